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
	"text/tabwriter"

	"castellan/cmd/app"
	"castellan/cmd/app/doctor"
	"castellan/config"
	"castellan/domain/kit/fault"
	"castellan/web"
)

// Set by the build.
var (
	version = web.Version + "-dev"
	commit  = "unknown"
	date    = "unknown"
)

// cli is the command line; runner documents the tags.
type cli struct {
	Config string `help:"YAML file; CASTELLAN_<SECTION>_<KEY> overrides it." type:"existingfile" placeholder:"FILE"`
	Help   bool   `help:"Print the help of a command and exit." short:"h"`

	Serve      serveCmd      `cmd:"" default:"withargs" help:"Run the service (the default command)."`
	Migrate    migrateCmd    `cmd:"" help:"Migrate the database to this version and exit."`
	Conf       configCmd     `cmd:"" name:"config" help:"Print and explain the effective settings; secrets are hidden."`
	Doctor     doctorCmd     `cmd:"" help:"List disabled controls and features, and check the configured services."`
	Health     healthCmd     `cmd:"" help:"Ask the running service whether it can serve (for probes)."`
	Version    versionCmd    `cmd:"" help:"Print the version, or the licences of the linked libraries."`
	SetupLink  setupLinkCmd  `cmd:"" name:"setup-link" help:"Print a link that makes the first administrator."`
	User       userCmd       `cmd:"" help:"Manage accounts: add, unlock, import, export, restrict."`
	Keys       keysCmd       `cmd:"" help:"Manage the keys of the service: list, rotate."`
	CronKey    cronKeyCmd    `cmd:"" help:"Manage keys of scheduled clients: add, list, remove."`
	ServiceKey serviceKeyCmd `cmd:"" name:"service-key" help:"Manage keys of service clients: add, list, rotate, remove."`
	Contract   contractCmd   `cmd:"" help:"Manage contracts that users accept: add, list."`
	Corporate  corporateCmd  `cmd:"" help:"Manage applications of companies: add."`
	Cluster    clusterCmd    `cmd:"" help:"Manage the keys of cluster nodes, and show their status."`
	Audit      auditCmd      `cmd:"" help:"Verify or archive the audit trail."`
	Ledger     ledgerCmd     `cmd:"" help:"Verify the ledger."`
	Backup     backupCmd     `cmd:"" help:"Copy database and files, while the service runs."`
	Restore    restoreCmd    `cmd:"" help:"Restore a backup, and compare withdrawals with the wallet."`
	Jobs       jobsCmd       `cmd:"" help:"Manage background jobs: list, watch, cancel, resend."`
	WAF        wafCmd        `cmd:"" name:"waf" help:"Manage firewall rules and the counters of rate limits."`
	Password   passwordCmd   `cmd:"" help:"Choose the parameters of password hashes: calibrate."`
	Rates      ratesCmd      `cmd:"" help:"Import exchange rates."`
	Money      moneyCmd      `cmd:"" help:"Manage rules of the money policy: list, add, status, remove."`
	Demo       demoCmd       `cmd:"" help:"Fill a new database with demo data."`
	Sink       sinkCmd       `cmd:"" help:"Print the SMS and mails of a trial, in place of a gateway and a mail server."`
	Intent     intentCmd     `cmd:"" help:"Verify the evidence of approvals."`
	Device     deviceCmd     `cmd:"" help:"Use a demo device: enroll it, list, approve and deny challenges."`
}

const description = `Castellan guards accounts with second-factor challenges.

Without settings it listens on 127.0.0.1:8080 in production mode, without demo
accounts and development pages, and stores its data in ./data (embedded SQLite).
To try it out, run "make run", or CASTELLAN_DEV=true castellan serve.

"castellan config" explains every setting and shows the source of its value;
"castellan doctor" lists disabled controls and features, and how to enable them.`

// env is the part of the process that a command may use.
type env struct {
	ctx context.Context
	cfg config.Config
	in  io.Reader
	out io.Writer
	err io.Writer
	log *slog.Logger
}

// print prints the result of a command that did not fail.
func (e *env) print(failed error, result ...any) error {
	if failed != nil {
		return failed
	}
	_, err := fmt.Fprintln(e.out, result...)
	return err
}

// printf is print with a format.
func (e *env) printf(failed error, format string, args ...any) error {
	if failed != nil {
		return failed
	}
	_, err := fmt.Fprintf(e.out, format, args...)
	return err
}

// read reads a whole file, or the standard input for "-", of at most so many bytes.
func (e *env) read(name string, most int64) ([]byte, error) {
	in := e.in
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s has more than %d bytes", name, most)
	}
	return text, err
}

// table returns a table of columns that are separated by tabs.
func (e *env) table() *tabwriter.Writer { return tabwriter.NewWriter(e.out, 0, 0, 2, ' ', 0) }

// explained replaces an error with a code by a text for the operator.
func explained(err error, code fault.Code, format string, args ...any) error {
	if fault.CodeOf(err) == code {
		return fmt.Errorf(format, args...)
	}
	return err
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
		if logs(selected, cfg) {
			logger(cfg, stderr).Error("invalid settings", "err", err)
		} else {
			fmt.Fprintf(stderr, "castellan: invalid settings:\n%v\n", err)
		}
		return 2
	}
	e := &env{ctx: ctx, cfg: cfg, in: stdin, out: stdout, err: stderr, log: logger(cfg, stderr)}
	err = selected.Run(e)
	if _, serves := selected.(*serveCmd); serves && errors.Is(err, context.Canceled) {
		return 0 // it was stopped before it served
	}
	if err != nil {
		if logs(selected, cfg) {
			e.log.Error("the command failed", "err", err)
		} else {
			fmt.Fprintf(stderr, "castellan: %v\n", err)
		}
		if own, ok := errors.AsType[exit](err); ok {
			return own.code
		}
		return 1
	}
	return 0
}

// logs reports whether the error that ends a command is a record of the log: if the log is JSON and no person reads the
// output of the command.
func logs(selected runner, cfg config.Config) bool {
	switch selected.(type) {
	case *serveCmd, *migrateCmd:
		return cfg.Log.Format == "json"
	}
	return false
}

func logger(cfg config.Config, w io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: cfg.Log.SlogLevel()}
	var h slog.Handler = slog.NewTextHandler(w, o)
	if cfg.Log.Format == "json" {
		o.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
			if a.Value.Kind() == slog.KindDuration { // otherwise a number without a unit
				a.Value = slog.StringValue(a.Value.Duration().String())
			}
			return a
		}
		h = slog.NewJSONHandler(w, o)
	}
	l := slog.New(h)
	slog.SetDefault(l)
	return l
}

type serveCmd struct{}

func (serveCmd) Help() string {
	return `Runs the service until SIGTERM or SIGINT. Then /health/ready answers 503, and new
requests are refused. Requests in flight finish, and sockets are closed with code
1012, so that clients reconnect to another node. The process exits with status 0.

Production requires a database (CASTELLAN_DATABASE_URL), a master key file
(CASTELLAN_KEYS_MASTER_FILE) and the public URL (CASTELLAN_HTTP_PUBLIC_URL). The
methods MAIL and SMS require an SMTP server and an SMS gateway. Create the first
administrator with "castellan setup-link" or "castellan user add --role admin".`
}

func (serveCmd) Run(e *env) error {
	return app.Serve(e.ctx, e.cfg, app.Options{Version: version, Commit: commit, Log: e.log, Out: e.out,
		Defaults: true})
}

type configCmd struct{}

func (configCmd) Run(e *env) error {
	return e.printf(nil, "%s", e.cfg.Describe())
}

type migrateCmd struct{}

func (migrateCmd) Help() string {
	return `Applies the migrations of this version and lists them. "serve" does the same when
it starts; use this command for deployments that migrate first. Several processes
can run it at the same time.`
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
