-- Step 4 of the schema: checks of devices.
--
-- A part of a check is a row of device_check, what it looked at its lines, in their order. Nothing of it
-- belongs to a run. A value that was not finite is NULL, and so is the goal of a line without a bound.
CREATE TABLE device_check (
    id           INTEGER PRIMARY KEY,
    created_ns   INTEGER NOT NULL,
    tool_version TEXT NOT NULL,
    part         TEXT NOT NULL,
    device       TEXT NOT NULL,
    name         TEXT NOT NULL,
    software     TEXT NOT NULL
) STRICT;

CREATE TABLE device_check_line (
    check_id INTEGER NOT NULL REFERENCES device_check,
    position INTEGER NOT NULL CHECK (position >= 0),
    key      TEXT NOT NULL,
    words    TEXT NOT NULL,
    value    REAL,
    unit     TEXT NOT NULL,
    bound    TEXT NOT NULL,
    goal     REAL,
    verdict  TEXT NOT NULL CHECK (verdict IN ('told', 'passed', 'failed')),
    PRIMARY KEY (check_id, position)
) STRICT, WITHOUT ROWID;

-- v_device: one row a line of a device check.
--   device_check     the number of its part; each that was stored has one
--   created          when it was stored, UTC
--   tool_version     of the program that checked
--   device           host or cuda; name and software: what it said of itself
--   part, position   which part of the check, and the line's place in it
--   key, words       what was looked at; keys stay the same
--   value, unit      what came out; unit is empty for a count
--   bound, goal      at most or at least that much, or none
--   verdict          passed, failed, or told where nobody judges
CREATE VIEW v_device AS
SELECT device_check.id AS device_check,
    strftime('%Y-%m-%d %H:%M:%S', device_check.created_ns / 1000000000, 'unixepoch') AS created,
    device_check.tool_version AS tool_version, device_check.device AS device,
    device_check.name AS name, device_check.software AS software, device_check.part AS part,
    line.position AS position, line.key AS key, line.words AS words, line.value AS value,
    line.unit AS unit, line.bound AS bound, line.goal AS goal, line.verdict AS verdict
FROM device_check
JOIN device_check_line AS line ON line.check_id = device_check.id;
