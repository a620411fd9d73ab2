-- A number that grows with everything that can forbid what was decided before: a start that was decided by an earlier
-- one is refused. What only the configuration or the daemon's memory says grows it by itself (`revise`).
ALTER TABLE meta ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
CREATE TRIGGER lock_revises AFTER UPDATE OF locked ON meta
BEGIN UPDATE meta SET revision = revision + 1; END;
CREATE TRIGGER token_revises AFTER UPDATE ON agents
BEGIN UPDATE meta SET revision = revision + 1; END;
CREATE TRIGGER deny_rule_revises AFTER INSERT ON deny_rules
BEGIN UPDATE meta SET revision = revision + 1; END;
CREATE TRIGGER end_of_permission_revises AFTER UPDATE OF ended_at ON permissions
BEGIN UPDATE meta SET revision = revision + 1; END;
CREATE TRIGGER end_of_entry_revises AFTER DELETE ON allowlist
BEGIN UPDATE meta SET revision = revision + 1; END;
CREATE TRIGGER exec_settings_revise AFTER UPDATE OF settings ON exec_approvals
BEGIN UPDATE meta SET revision = revision + 1; END;
CREATE TRIGGER elevation_revises AFTER INSERT ON elevations
BEGIN UPDATE meta SET revision = revision + 1; END;
CREATE TRIGGER end_of_elevation_revises AFTER UPDATE OF ended_at ON elevations
BEGIN UPDATE meta SET revision = revision + 1; END;
CREATE TRIGGER end_of_pairing_revises AFTER DELETE ON paired
BEGIN UPDATE meta SET revision = revision + 1; END;
CREATE TRIGGER session_mode_revises AFTER INSERT ON session_modes
BEGIN UPDATE meta SET revision = revision + 1; END;
CREATE TRIGGER change_of_session_mode_revises AFTER UPDATE ON session_modes
WHEN old.security IS NOT new.security OR old.ask IS NOT new.ask
BEGIN UPDATE meta SET revision = revision + 1; END;
