// Command castellan is the service and all its operator commands: main parses the command line and runs one command
// over package app.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"castellan/cmd/app"
	"castellan/cmd/app/doctor"
	"castellan/config"
)

// Set by the build.
var (
	version = "dev"
	commit  = "unknown"
	date    = "unknown"
)

// cli is the command line; runner documents the tags.
type cli struct {
	Config string `help:"YAML file; CASTELLAN_<SECTION>_<KEY> goes on top." type:"existingfile" placeholder:"FILE"`
	Help   bool   `help:"Say what a command does, and no more." short:"h"`

	Serve      serveCmd      `cmd:"" default:"withargs" help:"Run the service (what happens without a command)."`
	Migrate    migrateCmd    `cmd:"" help:"Bring the database to this version and stop."`
	Conf       configCmd     `cmd:"" name:"config" help:"Print the effective settings, explained; secrets are hidden."`
	Doctor     doctorCmd     `cmd:"" help:"Say which controls and features are off, and check live what is set."`
	Version    versionCmd    `cmd:"" help:"Print the version, or the licences of what is linked in."`
	User       userCmd       `cmd:"" help:"Accounts: add or unlock one, stop withdrawals, set allowed countries."`
	Keys       keysCmd       `cmd:"" help:"Keys of the service: rotate them."`
	CronKey    cronKeyCmd    `cmd:"" help:"Keys of scheduled clients: add one, list them, remove one."`
	ServiceKey serviceKeyCmd `cmd:"" name:"service-key" help:"Keys of service clients: add, list, rotate, remove."`
	Contract   contractCmd   `cmd:"" help:"Contracts that users agree to: add one, list them."`
	Corporate  corporateCmd  `cmd:"" help:"Applications of companies: add one."`
	Cluster    clusterCmd    `cmd:"" help:"Several nodes that act as one: their keys and their state."`
	Audit      auditCmd      `cmd:"" help:"The audit trail: verify it."`
	Ledger     ledgerCmd     `cmd:"" help:"The ledger: verify it."`
	Jobs       jobsCmd       `cmd:"" help:"Background jobs: list them, follow one, cancel it, send again."`
	WAF        wafCmd        `cmd:"" name:"waf" help:"Rules of the firewall: list them, disable one, explain a request."`
	Rates      ratesCmd      `cmd:"" help:"Exchange rates: import a file of them."`
	Demo       demoCmd       `cmd:"" help:"Fill a new database with a platform to look at."`
	Intent     intentCmd     `cmd:"" help:"Signed intents: verify the evidence of an approval."`
	Device     deviceCmd     `cmd:"" help:"A demo device that approves: register it, list, approve, deny."`
}

const description = `Castellan guards accounts with second-factor challenges.

Without settings it serves on 127.0.0.1:8080 with an embedded SQLite file in
./data, in production mode: no demo accounts, no development pages. For a first
look use "make run", or CASTELLAN_DEV=true castellan serve.

"castellan config" explains every setting and shows where its value comes from;
"castellan doctor" says what does not work with them and what to write.`

// env is the part of the process that a command may use.
type env struct {
	ctx context.Context
	cfg config.Config
	in  io.Reader
	out io.Writer
	err io.Writer
	log *slog.Logger
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// run is main without the process around it. It returns the exit status: 0, 1 for a failure, 2 for an invalid command
// line or invalid settings, 3 for an import with refused lines.
func run(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var c cli
	selected, err := parse(&c, "castellan", description, args, environ, stdout)
	if err != nil {
		fmt.Fprintf(stderr, "castellan: %v\n", err)
		return 2
	}
	if selected == nil { // --help
		return 0
	}
	cfg, err := config.Load(c.Config, environ, doctor.Check)
	if _, needsNone := selected.(*versionCmd); err != nil && !needsNone {
		fmt.Fprintf(stderr, "castellan: the settings cannot be used:\n%v\n", err)
		return 2
	}
	e := &env{ctx: ctx, cfg: cfg, in: stdin, out: stdout, err: stderr, log: logger(cfg, stderr)}
	if err := selected.Run(e); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(stderr, "castellan: %v\n", err)
		if own, ok := errors.AsType[exit](err); ok {
			return own.code
		}
		return 1
	}
	return 0
}

func logger(cfg config.Config, w io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: cfg.Log.SlogLevel()}
	var h slog.Handler = slog.NewTextHandler(w, o)
	if cfg.Log.Format == "json" {
		h = slog.NewJSONHandler(w, o)
	}
	l := slog.New(h)
	slog.SetDefault(l)
	return l
}

type serveCmd struct{}

func (serveCmd) Help() string {
	return `Runs the service until SIGTERM or SIGINT: then /health/ready answers 503, no new
work is taken, requests in flight finish, sockets are told to connect elsewhere
(close code 1012), and the process exits 0.

Production needs little: a database (CASTELLAN_DATABASE_URL), a master key file
(CASTELLAN_KEYS_MASTER_FILE), the public URL (CASTELLAN_HTTP_PUBLIC_URL), an SMTP
server and an SMS gateway for the methods MAIL and SMS. Make the first
administrator with "castellan user add --role admin".`
}

func (serveCmd) Run(e *env) error {
	return app.Serve(e.ctx, e.cfg, app.Options{Version: version, Commit: commit, Log: e.log, Out: e.out})
}

type configCmd struct{}

func (configCmd) Run(e *env) error {
	_, err := fmt.Fprint(e.out, e.cfg.Describe())
	return err
}

type migrateCmd struct{}

func (migrateCmd) Help() string {
	return `Applies the migrations that this version brings and lists them. "serve" does
the same at its start; this command is for deployments that do it beforehand.
Several processes may run it at once.`
}

func (migrateCmd) Run(e *env) error {
	db, applied, err := app.OpenDatabase(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, name := range applied {
		fmt.Fprintln(e.out, "applied", name)
	}
	fmt.Fprintln(e.out, "the database is up to date")
	return nil
}
