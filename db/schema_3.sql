-- Step 3 of the schema: runs that really ran, of kind real.
--
-- Such a run has one row of real_run, and what is in table run as well; the tasks of one that failed
-- may be none. Steps are counted as the program counts them: 0 is initialisation, 1 the first step.
-- The column kind of v_run is sim, plan (one row of a comparison) or real.

-- error is NULL where the run did all of its steps.
CREATE TABLE real_run (
    run_id    INTEGER PRIMARY KEY REFERENCES run,
    device    TEXT NOT NULL,
    transport TEXT NOT NULL,
    seed      INTEGER NOT NULL CHECK (seed >= 0),
    warmup    INTEGER NOT NULL CHECK (warmup >= 0),
    error     TEXT
) STRICT;

-- loss is NULL of a step without.
CREATE TABLE real_step (
    run_id     INTEGER NOT NULL REFERENCES run,
    step       INTEGER NOT NULL CHECK (step > 0),
    step_ns    INTEGER NOT NULL CHECK (step_ns >= 0),
    loss       REAL,
    not_finite INTEGER NOT NULL CHECK (not_finite >= 0),
    skipped    INTEGER NOT NULL CHECK (skipped IN (0, 1)),
    PRIMARY KEY (run_id, step)
) STRICT, WITHOUT ROWID;

-- A column a stream: the name of the task that it finished last, NULL for none.
CREATE TABLE real_rank (
    run_id   INTEGER NOT NULL REFERENCES run,
    rank     INTEGER NOT NULL CHECK (rank >= 0),
    step     INTEGER NOT NULL CHECK (step >= 0),
    error    TEXT,
    last_C   TEXT,
    last_AGI TEXT,
    last_AG  TEXT,
    last_RS  TEXT,
    last_AR  TEXT,
    PRIMARY KEY (run_id, rank)
) STRICT, WITHOUT ROWID;

CREATE TABLE real_check (
    run_id         INTEGER NOT NULL REFERENCES run,
    position       INTEGER NOT NULL CHECK (position >= 0),
    rank           INTEGER NOT NULL CHECK (rank >= 0),
    step           INTEGER NOT NULL CHECK (step >= 0),
    reserved_bytes INTEGER NOT NULL CHECK (reserved_bytes >= 0),
    mapped_bytes   INTEGER NOT NULL CHECK (mapped_bytes >= 0),
    PRIMARY KEY (run_id, position)
) STRICT, WITHOUT ROWID;

-- v_real: one row a run of kind real.
--   run
--   device           what it ran on
--   transport        what carried bytes between ranks: shm, mpi, or none
--   ranks, steps     how many there are, steps that were only begun included
--   warmup           so many of the steps are not measured
--   seed             of parameters and inputs
--   failed           1: it did not do all of its steps
--   error            why, or NULL
CREATE VIEW v_real AS
SELECT real.run_id AS run, real.device AS device, real.transport AS transport,
    (SELECT count(*) FROM real_rank WHERE real_rank.run_id = real.run_id) AS ranks,
    (SELECT count(*) FROM real_step WHERE real_step.run_id = real.run_id) AS steps,
    real.warmup AS warmup, real.seed AS seed, real.error IS NOT NULL AS failed,
    real.error AS error
FROM real_run AS real;

-- v_step: one row a step of a run of kind real.
--   run, step        from 1 on
--   measured         0: it was for warming up
--   step_ns          from the end of the step before; NULL for the first, and for one without end
--   loss             mean over ranks and microbatches, or NULL
--   not_finite       elements of the gradients that the optimizer read that are NaN or infinite, on
--                    all ranks
--   skipped          1: the loss scaler kept the optimizer from it
CREATE VIEW v_step AS
SELECT step.run_id AS run, step.step AS step, step.step > real.warmup AS measured,
    nullif(step.step_ns, 0) AS step_ns, step.loss AS loss, step.not_finite AS not_finite,
    step.skipped AS skipped
FROM real_step AS step
JOIN real_run AS real ON real.run_id = step.run_id;

-- v_rank: how each rank of a run of kind real ended.
--   run, rank
--   step             that its host thread was in
--   error            NULL: it did all of its steps
--   last_C ...       the task that each stream finished last, or NULL; the streams of v_task
CREATE VIEW v_rank AS
SELECT run_id AS run, rank, step, error, last_C, last_AGI, last_AG, last_RS, last_AR
FROM real_rank;

-- v_check: memory of a run of kind real as the program counts it and as the system does, one row a
-- look.
--   run, position    the look's number in its run
--   rank, step       where and when
--   reserved_bytes   of the program's segments; mapped_bytes is what the system reports of them
CREATE VIEW v_check AS
SELECT run_id AS run, position, rank, step, reserved_bytes, mapped_bytes
FROM real_check;
