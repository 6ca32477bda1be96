// Package doctor judges an installation: its settings, its parameters, and by live checks the services that it uses
// (D-INT-09).
//
// The one idea: every setting is judged, or listed as harmless in testdata/harmless.tsv.
//
// Start reading at Doctor; Check validates the settings before anything opens.
package doctor

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"castellan/config"
	"castellan/domain/kit/setup"
	"castellan/persistence"
)

// Examine checks an installation for the command (D-INT-09): settings, parameters, and live checks of the configured
// services. It opens the database read-only and changes nothing in it. If there is no database, it runs the other
// checks. progress receives the names of the running checks after each change; it may be nil.
func Examine(ctx context.Context, cfg config.Config, progress func(waiting []string)) setup.Report {
	opening, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	db, err := persistence.Open(opening, cfg.Database.URL.Reveal(), persistence.Options{MaxConns: 4, ReadOnly: true})
	if err == nil {
		defer db.Close()
	}
	d := Doctor{cfg: cfg, db: db, opened: err}
	return d.Report(ctx, true, progress)
}

// Doctor checks one installation.
type Doctor struct {
	cfg    config.Config
	db     *persistence.DB // nil: it could not be opened
	opened error           // why
	// Unreadable returns edge.Server.Unreadable; nil: there is no running node.
	Unreadable func() string
}

// Report judges settings and parameters, and runs the live checks if check is set.
func (d Doctor) Report(ctx context.Context, check bool, progress func([]string)) setup.Report {
	j := judgeSettings(d.cfg)
	stored, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	j.judgeStored(stored, d.cfg, d.db)
	if d.Unreadable != nil {
		text := d.Unreadable()
		j.control("http.trusted_proxies", text != "", "a proxy writes addresses that cannot be read, such as "+text,
			"its clients have the address of the proxy: limits and rules for one address apply to all of them together",
			"let the proxy write X-Forwarded-For: ADDRESS, with or without a port")
	}
	found, at := j.found, time.Time{}
	if check {
		found, at = append(found, runProbes(ctx, d.cfg, d.probes(), progress)...), time.Now()
	}
	for _, key := range setup.Accept(found, d.cfg.Doctor.Accepted) {
		if check { // otherwise it may be a live check
			found = append(found, setup.Finding{Key: "doctor.accepted", Severity: setup.Feature, State: key,
				Effect: "the key has no finding that can be accepted", Mend: "remove the key from doctor.accepted"})
		}
	}
	return setup.NewReport(!d.cfg.Dev, at, found)
}

// absent reports whether there is no database file yet.
func (d Doctor) absent() bool { return errors.Is(d.opened, fs.ErrNotExist) }

// New returns the doctor of a running node, whose database is open.
func New(cfg config.Config, db *persistence.DB) Doctor { return Doctor{cfg: cfg, db: db} }

// Log logs each finding at the start of a node: a warning for a control that is off. Development mode logs one
// line for all.
func Log(ctx context.Context, cfg config.Config, db *persistence.DB, log *slog.Logger) {
	r := New(cfg, db).Report(ctx, false, nil)
	if cfg.Dev {
		log.Info("development mode: castellan doctor lists the controls and features that are off",
			"controls", r.Count(setup.Control), "features", r.Count(setup.Feature))
		return
	}
	for _, f := range r.Findings {
		level := slog.LevelWarn
		if f.Severity == setup.Feature || f.Severity == setup.Accepted {
			level = slog.LevelInfo
		}
		log.Log(ctx, level, "setup", "key", f.Key, "severity", string(f.Severity), "state", f.State, "effect", f.Effect,
			"mend", f.Mend, "reason", f.Reason)
	}
}
