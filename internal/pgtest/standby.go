package pgtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Standby copies the running server to a new one that follows it as its synchronous standby, and returns when it
// streams. It has the settings of the first. Its address is that of former, a server that has ended, or a new one for
// nil.
func (s *Server) Standby(former *Server) (n *Server, err error) {
	n = &Server{bin: s.bin, cred: s.cred, settings: s.settings}
	if former != nil {
		n.port = former.port
	} else if n.port, err = freePort(); err != nil {
		return nil, err
	}
	if err := n.makeFolder(); err != nil {
		return nil, err
	}
	if err := n.follow(s); err != nil {
		n.Stop()
		return nil, err
	}
	return n, nil
}

// follow copies primary, starts the copy, and makes the primary wait for it.
func (s *Server) follow(primary *Server) error {
	from := fmt.Sprintf("host=127.0.0.1 port=%d user=app application_name=standby", primary.port)
	copies := s.command("pg_basebackup", "-D", s.data(), "-d", from, "-R", "-X", "stream", "-c", "fast", "--no-sync")
	if err := finished("pg_basebackup", copies); err != nil {
		return err
	}
	if err := s.Restart(); err != nil {
		return err
	}
	for _, line := range []string{"ALTER SYSTEM SET synchronous_standby_names = 'standby'", "SELECT pg_reload_conf()"} {
		if err := do(primary.DSN(), line); err != nil {
			return err
		}
	}
	const streams = "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync') " +
		"THEN RAISE 'no synchronous standby'; END IF; END $$"
	if err := await(func() error { return do(primary.DSN(), streams) }); err != nil {
		return fmt.Errorf("pgtest: the standby does not stream: %w", err)
	}
	return nil
}

// Promote makes a standby the primary.
func (s *Server) Promote() error {
	if err := s.forget(); err != nil {
		return err
	}
	return finished("pg_ctl promote", s.command("pg_ctl", "promote", "-D", s.data(), "-w"))
}

// Alone starts a primary that was killed, without its standby: it takes writes and waits for nothing.
func (s *Server) Alone() error {
	if err := s.forget(); err != nil {
		return err
	}
	return s.Restart()
}

// forget removes the synchronous standby from the settings of the next start or promotion.
func (s *Server) forget() error {
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.auto.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = fmt.Fprintln(f, "synchronous_standby_names = ''")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("pgtest: forget the standby: %w", err)
	}
	return nil
}

// Both returns the address of the default database on either of two servers, whichever is the primary.
func Both(a, b *Server) string {
	return fmt.Sprintf("postgres://app@127.0.0.1:%d,127.0.0.1:%d/postgres?sslmode=disable&target_session_attrs=read-write",
		a.port, b.port)
}
