-- One append, in one call. Statuses: 0 stored, 1 again, 2 conflict, 3 unknown, 4 future, 5 early.
--
-- The head row is locked first and until commit, so events get their positions in the order in which
-- they are committed; and a volatile function's later statements see what earlier holders committed.
-- Pieces are handled a run at a time, other items one by one. A connection plans once, perhaps while
-- the tables are empty, and they grow; so only the plan that looks each thing up by its index is allowed.
CREATE FUNCTION accrual_append(
    to_bandit BIGINT,
    clock DOUBLE PRECISION,
    skew DOUBLE PRECISION,
    kinds BIGINT[],
    subjects BIGINT[],           -- a piece's or a closing's decision; a retiring arm; what a choice had seen
    amounts DOUBLE PRECISION[],  -- a piece's value; an arm's cap
    ages DOUBLE PRECISION[],     -- a piece's age, if stated; an arm's window
    whens DOUBLE PRECISION[],    -- a piece's own time, if stated
    names TEXT[],                -- a key; an arm's name
    counts BIGINT[],             -- how many of `arms` are a choice's
    arms BIGINT[],
    windows DOUBLE PRECISION[],
    OUT statuses BIGINT[],
    OUT seqs BIGINT[],
    OUT ats DOUBLE PRECISION[],
    OUT numbers BIGINT[],
    OUT lates BOOLEAN[],
    OUT kept DOUBLE PRECISION[], -- the ages of pieces, as stored
    OUT again BIGINT[]           -- the arms of choices made before, one after the other
)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
SET enable_material = off
SET enable_memoize = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    h RECORD;
    old RECORD;
    run RECORD;
    t DOUBLE PRECISION;      -- the events' time
    start BIGINT;
    taken BIGINT := 0;       -- of `arms`
    n BIGINT := cardinality(kinds);
    i BIGINT := 1;
    j BIGINT;
    many BIGINT;
    known BIGINT;
    state BIGINT;
    place BIGINT;
    moment DOUBLE PRECISION;
    number_ BIGINT;
    twins BIGINT[];          -- of a run: places of pieces that come in it before
BEGIN
    SELECT head.seq, head.decisions, head.arms, head.at, bandit.rounds INTO h
    FROM head JOIN bandit ON bandit.number = head.bandit
    WHERE head.bandit = to_bandit FOR UPDATE OF head;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING MESSAGE = 'no bandit has the number ' || to_bandit;
    END IF;
    t := CASE WHEN h.rounds THEN h.decisions ELSE greatest(h.at, clock) END;
    start := h.seq;

    WHILE i <= n LOOP
        IF kinds[i] = 1 THEN
            j := i;
            WHILE j < n AND kinds[j + 1] = 1 LOOP
                j := j + 1;
            END LOOP;
            WITH item AS MATERIALIZED (
                SELECT u.place, u.decision, u.value, u.stated, u.early, u.age, u.made, u."window",
                    coalesce(u.key, CASE WHEN u.stated THEN left(encode(sha256(
                        int8send(u.decision) || float8send(u.value + 0::FLOAT8) || float8send(u.age + 0::FLOAT8)
                    ), 'hex'), 32) END) AS key
                FROM (
                    SELECT g.place, g.decision, g.value, g.key, d.at AS made, d."window",
                        g.age IS NOT NULL OR g.at IS NOT NULL AS stated,
                        g.age IS NULL AND g.at < d.at - skew AS early,
                        coalesce(g.age, CASE WHEN g.at IS NOT NULL THEN greatest(g.at - d.at, 0) END, t - d.at) AS age
                    FROM unnest(subjects[i:j], amounts[i:j], ages[i:j], whens[i:j], names[i:j])
                        WITH ORDINALITY AS g (decision, value, age, at, key, place)
                    LEFT JOIN decision d ON d.bandit = to_bandit AND d.id = g.decision
                ) AS u
            ), judged AS (
                SELECT k.*, p.seq AS seq_was, p.at AS at_was, p.late AS late_was, p.age AS age_was,
                    k.age >= k."window" OR t >= k.made + k."window" OR c.seq IS NOT NULL AS late,
                    CASE
                        WHEN k.made IS NULL THEN 3
                        WHEN k.early THEN 5
                        WHEN k.stated AND k.made + k.age > t + skew THEN 4
                        WHEN p.value = k.value AND p.stated = k.stated AND (p.age = k.age OR NOT k.stated) THEN 1
                        WHEN p.seq IS NOT NULL THEN 2
                        WHEN k.place = ANY (twins) THEN 6
                        ELSE 0
                    END AS status
                FROM item k
                LEFT JOIN piece p ON p.bandit = to_bandit AND p.decision = k.decision AND p.key = k.key
                LEFT JOIN change c ON c.bandit = to_bandit AND c.kind = 2 AND c.subject = k.decision
            ), placed AS (
                SELECT q.*, h.seq + count(*) FILTER (WHERE q.status = 0) OVER (ORDER BY q.place) AS seq
                FROM judged q
            ), added AS (
                INSERT INTO piece (bandit, seq, decision, key, value, age, stated, at, late)
                SELECT to_bandit, f.seq, f.decision, f.key, f.value, f.age, f.stated, t, f.late
                FROM placed f WHERE f.status = 0 ORDER BY f.seq
                ON CONFLICT (bandit, decision, key) WHERE key IS NOT NULL DO NOTHING
                RETURNING 1
            )
            SELECT array_agg(a.status) AS statuses,
                array_agg(CASE a.status WHEN 0 THEN a.seq WHEN 1 THEN a.seq_was ELSE 0 END) AS seqs,
                array_agg(CASE a.status WHEN 0 THEN t WHEN 1 THEN a.at_was ELSE 0 END) AS ats,
                array_agg(CASE a.status WHEN 0 THEN a.late WHEN 1 THEN a.late_was ELSE FALSE END) AS lates,
                array_agg(CASE a.status WHEN 1 THEN a.age_was WHEN 0 THEN a.age WHEN 6 THEN a.age ELSE 0 END) AS kept,
                array_agg(a.key) AS keys,
                array_agg(a.stated) AS stated,
                count(*) FILTER (WHERE a.status = 0) AS fresh,
                (SELECT count(*) FROM added) AS added
            INTO run FROM (SELECT * FROM placed ORDER BY place) AS a;
            IF run.added < run.fresh THEN
                -- Some came twice in this very run, which is rare. It starts again and leaves them out.
                SELECT array_agg(g.place) INTO twins
                FROM unnest(run.statuses, run.seqs) WITH ORDINALITY AS g (status, seq, place)
                LEFT JOIN piece p ON p.bandit = to_bandit AND p.seq = g.seq
                WHERE g.status = 0 AND p.seq IS NULL;
                DELETE FROM piece p WHERE p.bandit = to_bandit AND p.seq > h.seq;
                CONTINUE;
            END IF;
            IF twins IS NOT NULL THEN
                FOR old IN
                    SELECT g.place, p.seq, p.at, p.late, p.age,
                        p.value = g.value AND p.stated = g.stated AND (p.age = g.age OR NOT g.stated) AS same
                    FROM unnest(run.kept, run.keys, run.stated, subjects[i:j], amounts[i:j])
                        WITH ORDINALITY AS g (age, key, stated, decision, value, place)
                    JOIN piece p ON p.bandit = to_bandit AND p.decision = g.decision AND p.key = g.key
                    WHERE g.place = ANY (twins)
                LOOP
                    run.statuses[old.place] := CASE WHEN old.same THEN 1 ELSE 2 END;
                    run.seqs[old.place] := CASE WHEN old.same THEN old.seq ELSE 0 END;
                    run.ats[old.place] := CASE WHEN old.same THEN old.at ELSE 0 END;
                    run.lates[old.place] := old.same AND old.late;
                    run.kept[old.place] := CASE WHEN old.same THEN old.age ELSE 0 END;
                END LOOP;
                twins := NULL;
            END IF;
            statuses := statuses || run.statuses;
            seqs := seqs || run.seqs;
            ats := ats || run.ats;
            numbers := numbers || array_fill(0::BIGINT, ARRAY[(j - i + 1)::INT]);
            lates := lates || run.lates;
            kept := kept || run.kept;
            h.seq := h.seq + run.fresh;
            i := j + 1;
            CONTINUE;
        END IF;

        place := 0;
        moment := 0;
        number_ := 0;
        IF kinds[i] = 0 THEN
            many := counts[i];
            known := 0;
            state := 0;
            IF names[i] IS NOT NULL THEN
                SELECT count(*) AS many, min(d.seq) AS seq, min(d.at) AS at, min(d.id) AS id,
                    array_agg(d.arm ORDER BY d.part) AS arms
                INTO old FROM decision d WHERE d.bandit = to_bandit AND d.key = names[i];
                known := old.many;
            END IF;
            FOR j IN taken + 1 .. taken + many LOOP
                IF arms[j] < 0 OR arms[j] >= h.arms THEN
                    state := 3;
                END IF;
            END LOOP;
            IF state = 0 AND known > 0 THEN
                state := CASE WHEN known = many THEN 1 ELSE 2 END;
                IF state = 1 THEN
                    place := old.seq;
                    moment := old.at;
                    number_ := old.id;
                    again := again || old.arms;
                END IF;
            ELSIF state = 0 THEN
                INSERT INTO decision (bandit, id, seq, arm, at, "window", seen, key, part)
                SELECT to_bandit, h.decisions + u.part - 1, h.seq + u.part, u.arm,
                    CASE WHEN h.rounds THEN h.decisions + u.part ELSE t END,
                    u."window", subjects[i], names[i], u.part - 1
                FROM unnest(arms[taken + 1:taken + many], windows[taken + 1:taken + many])
                    WITH ORDINALITY AS u (arm, "window", part);
                place := h.seq + 1;
                number_ := h.decisions;
                moment := CASE WHEN h.rounds THEN h.decisions + 1 ELSE t END;
                h.seq := h.seq + many;
                h.decisions := h.decisions + many;
                IF h.rounds THEN
                    t := h.decisions;
                END IF;
            END IF;
            taken := taken + many;
        ELSE
            IF kinds[i] = 3 THEN
                SELECT a.number, a.cap, a."window" INTO old
                FROM arm a WHERE a.bandit = to_bandit AND a.name = names[i];
                IF NOT FOUND THEN
                    state := 0;
                    number_ := h.arms;
                    INSERT INTO arm (bandit, number, name, cap, "window")
                    VALUES (to_bandit, h.arms, names[i], amounts[i], ages[i]);
                    h.arms := h.arms + 1;
                ELSIF old.cap = amounts[i] AND old."window" = ages[i] THEN
                    state := 1;
                    number_ := old.number;
                ELSE
                    state := 2;
                END IF;
            ELSE
                number_ := subjects[i];
                IF number_ < 0 OR number_ >= (CASE kinds[i] WHEN 2 THEN h.decisions ELSE h.arms END) THEN
                    state := 3;
                ELSE
                    state := 0;
                END IF;
            END IF;
            IF state < 2 THEN
                SELECT c.seq, c.at INTO old FROM change c
                WHERE c.bandit = to_bandit AND c.kind = kinds[i] AND c.subject = number_;
                IF FOUND THEN
                    state := 1;
                    place := old.seq;
                    moment := old.at;
                ELSE
                    h.seq := h.seq + 1;
                    place := h.seq;
                    moment := t;
                    INSERT INTO change (bandit, seq, kind, subject, at)
                    VALUES (to_bandit, h.seq, kinds[i], number_, t);
                END IF;
            END IF;
            IF kinds[i] <> 3 OR state > 1 THEN
                number_ := 0;
            END IF;
        END IF;
        statuses := statuses || state;
        seqs := seqs || place;
        ats := ats || moment;
        numbers := numbers || number_;
        lates := lates || FALSE;
        kept := kept || 0::FLOAT8;
        i := i + 1;
    END LOOP;

    IF h.seq > start THEN
        UPDATE head SET seq = h.seq, at = t, decisions = h.decisions, arms = h.arms
        WHERE bandit = to_bandit;
    END IF;
END
$$;
