/* A disk that forgets: of the files in one folder, only what was synced is kept.
 *
 * Preloaded before libc (LD_PRELOAD), told what to do through ctypes. The watched folder is what
 * programs see: the page cache. The `disk` folder is what a power cut would leave:
 *
 *   disk/<inode>   the content of a file, as of its last fsync or fdatasync
 *   disk/names     "<inode> <name>" for each file, as of the last fsync of the folder
 *   disk/cut       the call at which the power went
 *   disk/old       the files that have lost their name, lest their inode numbers be used again
 *
 * A failed fsync forgets what it should have written, as Linux does: the next one succeeds without it.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECTOR = 512, SECTORS = 1 << 18, FILES = 1024 }; /* a file has at most 128 MiB */

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char live[PATH_MAX], disk[PATH_MAX];
static struct {
    ino_t inode;
    char *dirty; /* one for each sector written since the last sync */
} files[FILES];
static char cut_where[64], fail_where[64];
static long cut_after, fail_after; /* calls left until it happens */
static int cutting, failing, half; /* half: the next write is cut short before all fail */

static int ends(const char *path, const char *with)
{
    size_t a = strlen(path), b = strlen(with);
    return a >= b && !strcmp(path + a - b, with);
}

/* Whether this is the watched folder (2), a file in it (1), or nothing of ours (0). */
static int watched(int fd, char *path)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = *live ? readlink(link, path, PATH_MAX - 1) : -1;
    if (n < 0)
        return 0;
    path[n] = 0;
    size_t folder = strlen(live);
    if (strncmp(path, live, folder) || ends(path, "-shm")) /* SQLite's index of the log: never synced */
        return 0;
    return path[folder] == '/' ? 1 : path[folder] ? 0 : 2;
}

/* A call is about to happen. The power may go; or the call fails: -1, with errno set. */
static int step(const char *call, const char *path)
{
    if (cutting && ends(path, cut_where) && cut_after-- <= 0) {
        char name[PATH_MAX + 8];
        snprintf(name, sizeof name, "%s/cut", disk);
        FILE *file = fopen(name, "w");
        fprintf(file, "%s %s\n", call, strrchr(path, '/') + 1);
        fclose(file);
        raise(SIGKILL);
    }
    if (failing && ends(path, fail_where) && fail_after-- <= 0) {
        errno = failing;
        return -1;
    }
    return 0;
}

static char *dirty(ino_t inode)
{
    int i = 0;
    while (files[i].dirty && files[i].inode != inode)
        if (++i == FILES)
            abort();
    if (!files[i].dirty) {
        files[i].inode = inode;
        files[i].dirty = calloc(SECTORS, 1);
    }
    return files[i].dirty;
}

static void mark(int fd, off_t from, off_t to)
{
    struct stat st;
    fstat(fd, &st);
    if (to > (off_t)SECTOR * SECTORS)
        abort();
    if (from < to)
        memset(dirty(st.st_ino) + from / SECTOR, 1, (to - 1) / SECTOR - from / SECTOR + 1);
}

/* What was written since the last sync reaches the disk, or (keep = 0) is forgotten. */
static void settle(int fd, int keep)
{
    struct stat st;
    char path[PATH_MAX + 32], buffer[SECTOR];
    fstat(fd, &st);
    char *sectors = dirty(st.st_ino);
    if (keep) {
        snprintf(path, sizeof path, "%s/%lu", disk, st.st_ino);
        int to = open(path, O_WRONLY | O_CREAT, 0600);
        /* Where possible from fd itself: to close another would drop the process's locks on the file. */
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        int from = (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY ? open(path, O_RDONLY) : fd;
        for (off_t i = 0; i * SECTOR < st.st_size; i++)
            if (sectors[i]) {
                ssize_t n = pread(from, buffer, SECTOR, i * SECTOR);
                if (n < 0 || REAL(pwrite)(to, buffer, n, i * SECTOR) != n)
                    abort();
            }
        if (REAL(ftruncate)(to, st.st_size))
            abort();
        if (from != fd)
            close(from);
        close(to);
    }
    memset(sectors, 0, SECTORS);
}

static void settle_names(void)
{
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/names", disk);
    FILE *file = fopen(path, "w");
    DIR *folder = opendir(live);
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_type == DT_REG)
            fprintf(file, "%lu %s\n", entry->d_ino, entry->d_name);
    closedir(folder);
    fclose(file);
}

/* A name is about to be lost: 0, or -1 where that fails. */
static int unname(const char *path)
{
    struct stat st;
    char name[PATH_MAX + 32];
    if (!*live || strncmp(path, live, strlen(live)) || ends(path, "-shm") || stat(path, &st))
        return 0;
    snprintf(name, sizeof name, "%s/old/%lu", disk, st.st_ino);
    link(path, name);
    return step("unlink", path);
}

static ssize_t write_at(int fd, const void *data, size_t size, off_t at, int moves)
{
    char path[PATH_MAX];
    int ours = watched(fd, path);
    if (ours) {
        pthread_mutex_lock(&lock);
        if (step("write", path)) {
            if (!half || size < 2) {
                pthread_mutex_unlock(&lock);
                return -1;
            }
            half = 0;
            size /= 2;
        }
        off_t from = moves ? lseek(fd, 0, SEEK_CUR) : at;
        mark(fd, from, from + size);
    }
    ssize_t n = moves ? REAL(write)(fd, data, size) : REAL(pwrite)(fd, data, size, at);
    if (ours)
        pthread_mutex_unlock(&lock);
    return n;
}

static int sync_file(int fd, int (*real)(int))
{
    char path[PATH_MAX];
    int ours = watched(fd, path);
    if (!ours)
        return real(fd);
    pthread_mutex_lock(&lock);
    int failed = step("sync", path);
    if (ours == 1)
        settle(fd, !failed);
    else if (!failed)
        settle_names();
    pthread_mutex_unlock(&lock);
    return failed;
}

ssize_t write(int fd, const void *data, size_t size) { return write_at(fd, data, size, 0, 1); }
ssize_t pwrite(int fd, const void *data, size_t n, off_t at) { return write_at(fd, data, n, at, 0); }
ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at) { return write_at(fd, data, n, at, 0); }
int fsync(int fd) { return sync_file(fd, REAL(fsync)); }
int fdatasync(int fd) { return sync_file(fd, REAL(fdatasync)); }

int ftruncate(int fd, off_t size)
{
    char path[PATH_MAX];
    struct stat st;
    int failed = 0, ours = watched(fd, path);
    if (ours) {
        pthread_mutex_lock(&lock);
        failed = step("truncate", path);
        fstat(fd, &st);
        if (!failed)
            mark(fd, size < st.st_size ? size : st.st_size, size < st.st_size ? st.st_size : size);
    }
    if (!failed)
        failed = REAL(ftruncate)(fd, size);
    if (ours)
        pthread_mutex_unlock(&lock);
    return failed;
}

int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }

int unlink(const char *path)
{
    pthread_mutex_lock(&lock);
    int failed = unname(path) || REAL(unlink)(path) ? -1 : 0;
    pthread_mutex_unlock(&lock);
    return failed;
}

int rename(const char *from, const char *to)
{
    pthread_mutex_lock(&lock);
    int failed = unname(to) || REAL(rename)(from, to) ? -1 : 0;
    pthread_mutex_unlock(&lock);
    return failed;
}

/* Watch a folder. What is in it is on the disk. */
void disk_watch(const char *folder, const char *shadow)
{
    char path[PATH_MAX + NAME_MAX + 8];
    snprintf(disk, sizeof disk, "%s", shadow);
    snprintf(path, sizeof path, "%s/old", disk);
    mkdir(path, 0700);
    snprintf(live, sizeof live, "%s", folder);
    settle_names();
    DIR *all = opendir(live);
    for (struct dirent *entry; (entry = readdir(all));)
        if (entry->d_type == DT_REG) {
            struct stat st;
            snprintf(path, sizeof path, "%s/%s", live, entry->d_name);
            int fd = open(path, O_RDONLY);
            fstat(fd, &st);
            mark(fd, 0, st.st_size);
            settle(fd, 1);
            close(fd);
        }
    closedir(all);
}

/* The power goes at a call on a file whose name ends so, after so many others. */
void disk_cut(const char *where, long after)
{
    snprintf(cut_where, sizeof cut_where, "%s", where);
    cut_after = after;
    cutting = 1;
}

/* From a call on a file whose name ends so, after so many others, all of them fail; error 0: no more. */
void disk_fail(int error, const char *where, long after)
{
    pthread_mutex_lock(&lock);
    snprintf(fail_where, sizeof fail_where, "%s", where);
    fail_after = after;
    failing = error;
    half = error == ENOSPC;
    pthread_mutex_unlock(&lock);
}
