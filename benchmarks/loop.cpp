// A plain C++ loop for the paper's Setting 1, as a yardstick for the library's speed: the same
// algorithm and arithmetic as its engine, written by hand for these policies and nothing else.
//
// Compile with -DARMS=<number of arms>; with -DTWO_PASSES the best arm is looked for after all
// indices are known, which lets the compiler unroll and the processor guess better.
//
// Reads from standard input:
//     window groups horizon seed run
//     cap of each arm
//     gap of each arm
//     number of policies, then one line for each:
//         totals LAG                   learns a decision's total LAG rounds after it
//         pieces COINCIDENCE.. OWED..  learns every piece; both for each arm, OWED is phi cap E[Y]
// Prints the seconds of processor time taken, then the final regret of each policy.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <iomanip>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

constexpr int SPAN = 4096;  // rounds drawn at a time, for all policies
constexpr double INFINITE = std::numeric_limits<double>::infinity();

struct Problem {
    int window, groups, horizon;
    uint64_t seed;
    uint32_t run;
    double cap[ARMS], gap[ARMS];
};

struct Feed {
    std::vector<double> changes;  // rounds x (groups + 1): changes of payment due in a round
    std::vector<double> total;    // of the decisions of the window before the span, then of the span
    std::vector<double> log;
};

struct Chain {
    bool pieces;
    int lag;
    double coincidence[ARMS] = {};
    int64_t pulls[ARMS] = {}, closed[ARMS] = {};
    double observed[ARMS] = {}, owed[ARMS] = {}, inverse[ARMS] = {}, width[ARMS] = {};
    double rate[4][ARMS] = {};  // four partial sums, so that additions do not wait for each other
    std::vector<int32_t> arms;  // of the window before the span, then of the span
};

static void philox(uint32_t c[4], uint32_t k0, uint32_t k1) {
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = 0xD2511F53ull * c[0], p1 = 0xCD9E8D57ull * c[2];
        c[0] = uint32_t(p1 >> 32) ^ c[1] ^ k0;
        c[1] = uint32_t(p1);
        c[2] = uint32_t(p0 >> 32) ^ c[3] ^ k1;
        c[3] = uint32_t(p0);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

static double unit(uint32_t high, uint32_t low) {
    return double(((uint64_t(high) << 32) | low) >> 11) * (1.0 / 9007199254740992.0);
}

static void draw(const Problem& p, Feed& feed, int start, int length) {
    const int phi = p.window / p.groups, row = p.groups + 1;
    const double share = 1.0 / p.groups;
    std::vector<double> u(p.groups + 1);
    for (int i = 0; i < length; i++) {
        feed.log[i] = std::log(std::max(start + i - 1.0, 1.0));
        for (int block = 0; 2 * block < p.groups; block++) {
            uint32_t c[4] = {uint32_t(start + i), p.run, uint32_t(block), 0};
            philox(c, uint32_t(p.seed), uint32_t(p.seed >> 32));
            u[2 * block] = unit(c[0], c[1]);
            u[2 * block + 1] = unit(c[2], c[3]);
        }
        double total = 0, before = 0;
        for (int g = 0; g < p.groups; g++) {
            const double pay = share * u[g], rate = pay / phi;
            total += pay;
            feed.changes[(i + g * phi) * row + g] = rate - before;
            before = rate;
        }
        feed.changes[(i + p.window) * row + p.groups] = -before;
        feed.total[p.window + i] = total;
    }
}

static double index(const Chain& c, int k, double scale) {
    return (c.observed[k] + c.owed[k]) * c.inverse[k] + scale * c.width[k];
}

static int best_arm(const Chain& c, double log) {
    const double scale = std::sqrt(2.0 * log);
    double best = -INFINITE;
#ifdef TWO_PASSES
    double value[ARMS];
    for (int k = 0; k < ARMS; k++) {
        value[k] = index(c, k, scale);
        best = value[k] > best ? value[k] : best;
    }
    for (int k = 0; k < ARMS; k++)
        if (value[k] == best) return k;
    return 0;
#else
    int arm = 0;
    for (int k = 0; k < ARMS; k++) {
        const double value = index(c, k, scale);
        if (value > best) {
            best = value;
            arm = k;
        }
    }
    return arm;
#endif
}

static void advance_totals(const Problem& p, Chain& c, const Feed& feed, int start, int length) {
    int32_t* arms = &c.arms[p.window];
    for (int i = 0; i < length; i++) {
        const int t = start + i;
        const int arm = t <= ARMS ? t - 1 : best_arm(c, feed.log[i]);
        arms[i] = arm;
        c.pulls[arm]++;
        if (c.closed[arm] == 0) c.inverse[arm] = 1.0 / (1.0 + c.pulls[arm]);
        if (t > c.lag) {
            const int s = i - c.lag, a = arms[s];
            if (c.closed[a]++ == 0) c.observed[a] = 0.0;
            c.observed[a] += p.cap[a] * feed.total[p.window + s];
            c.inverse[a] = 1.0 / c.closed[a];
            c.width[a] = p.cap[a] * std::sqrt(c.inverse[a]);
        }
    }
}

static void advance_pieces(const Problem& p, Chain& c, const Feed& feed, int start, int length) {
    const int phi = p.window / p.groups, row = p.groups + 1;
    int32_t* arms = &c.arms[p.window];
    for (int i = 0; i < length; i++) {
        const int t = start + i;
        const int arm = t <= ARMS ? t - 1 : best_arm(c, feed.log[i]);
        arms[i] = arm;
        c.pulls[arm]++;
        c.inverse[arm] = 1.0 / c.pulls[arm];
        c.width[arm] = p.cap[arm] * std::sqrt(c.coincidence[arm] * c.inverse[arm]);

        // Gather the changes due now from the decisions made 0, phi, 2 phi, ... rounds ago.
        const double* due = &feed.changes[std::size_t(i) * row];
        const int32_t* past = arms + i;
        int j = 0;
        for (; j + 4 <= row; j += 4, past -= 4 * phi) {
            c.rate[0][past[0]] += due[j];
            c.rate[1][past[-phi]] += due[j + 1];
            c.rate[2][past[-2 * phi]] += due[j + 2];
            c.rate[3][past[-3 * phi]] += due[j + 3];
        }
        for (; j < row; j++, past -= phi) c.rate[j & 3][*past] += due[j];
        for (int k = 0; k < ARMS; k++)
            c.observed[k] += p.cap[k] * ((c.rate[0][k] + c.rate[1][k]) + (c.rate[2][k] + c.rate[3][k]));
    }
}

static std::vector<Chain> read_chains(const Problem& p) {
    int policies = 0;
    std::cin >> policies;
    std::vector<Chain> chains(policies);
    for (Chain& c : chains) {
        std::string kind;
        std::cin >> kind;
        c.pieces = kind == "pieces";
        if (c.pieces) {
            for (double& coincidence : c.coincidence) std::cin >> coincidence;
            for (double& owed : c.owed) std::cin >> owed;
        } else {
            std::cin >> c.lag;
            // Arms without a known total come first, in turn: the fewest decisions, the largest index.
            std::fill_n(c.observed, ARMS, 1e300);
            std::fill_n(c.inverse, ARMS, 1.0);
        }
        c.arms.assign(p.window + SPAN, 0);
    }
    return chains;
}

static void play(const Problem& p, std::vector<Chain>& chains) {
    const int row = p.groups + 1;
    Feed feed{std::vector<double>(std::size_t(SPAN + p.window + 1) * row),
              std::vector<double>(SPAN + p.window), std::vector<double>(SPAN)};
    for (int start = 1; start <= p.horizon; start += SPAN) {
        const int length = std::min(SPAN, p.horizon + 1 - start);
        draw(p, feed, start, length);
        for (Chain& c : chains) {
            (c.pieces ? advance_pieces : advance_totals)(p, c, feed, start, length);
            std::memmove(&c.arms[0], &c.arms[length], p.window * sizeof c.arms[0]);
        }
        // What earlier decisions still owe moves to the front.
        std::memmove(&feed.changes[0], &feed.changes[std::size_t(length) * row],
                     std::size_t(p.window + 1) * row * sizeof(double));
        std::memmove(&feed.total[0], &feed.total[length], p.window * sizeof(double));
    }
}

int main() {
    Problem p;
    std::cin >> p.window >> p.groups >> p.horizon >> p.seed >> p.run;
    for (double& cap : p.cap) std::cin >> cap;
    for (double& gap : p.gap) std::cin >> gap;
    std::vector<Chain> chains = read_chains(p);
    if (!std::cin) {
        std::cerr << "loop: cannot read the problem from standard input\n";
        return 2;
    }

    const std::clock_t began = std::clock();
    play(p, chains);
    const std::clock_t ended = std::clock();

    std::cout << std::setprecision(17) << double(ended - began) / CLOCKS_PER_SEC << '\n';
    for (const Chain& c : chains) {
        double regret = 0;
        for (int k = 0; k < ARMS; k++) regret += p.gap[k] * c.pulls[k];
        std::cout << regret << '\n';
    }
}
