// Command pgserve runs another command with a temporary PostgreSQL beside it:
//
//	go run ./internal/pgtest/cmd/pgserve go test ./...
//
// The command finds the server's address in CASTELLAN_TEST_POSTGRES, so that all packages of one test run share one
// server. The tables are created once, in a database that each test copies. If the variable is set already, the command
// uses the server that it names. The exit status is the command's.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"castellan/internal/pgtest"
	"castellan/persistence"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func run(args []string) (int, error) {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return 2, errors.New("usage: pgserve [--] command [argument ...]")
	}
	// Before the server, so that no signal can end this process between the two.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)

	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if os.Getenv(pgtest.EnvServer) == "" {
		server, err := pgtest.Start()
		if err != nil {
			return 1, err
		}
		defer server.Stop()
		server.Prefer()
		if err := migrated(server.Database(template)); err != nil {
			return 1, fmt.Errorf("pgserve: make the tables: %w", err)
		}
		cmd.Env = append(os.Environ(), pgtest.EnvServer+"="+server.DSN(), pgtest.EnvTemplate+"="+template)
	}
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("pgserve: %w", err)
	}
	go func() {
		for s := range signals {
			// The terminal sends Ctrl-C to the command as well; this one is for us.
			if s != os.Interrupt {
				cmd.Process.Signal(s)
			}
		}
	}()
	err := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit):
		return max(1, exit.ExitCode()), nil // -1, ended by a signal, is a failure too
	default:
		return 1, fmt.Errorf("pgserve: %w", err)
	}
}

// template is the database that the tests copy.
const template = "castellan_template"

func migrated(dsn string, err error) error {
	if err != nil {
		return err
	}
	db, err := persistence.Open(context.Background(), dsn, persistence.Options{})
	if err != nil {
		return err
	}
	_, err = persistence.Migrate(context.Background(), db)
	return errors.Join(err, db.Close())
}
