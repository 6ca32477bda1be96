// Package setup owns the findings about an installation: controls and features that are off, and checks that failed
// (D-INT-09).
//
// The one idea: a finding is text for an operator, with the setting or parameter that it is about. The command, the
// endpoint and the log show the same findings, so they are made in one place (cmd/app) and only carried here.
//
// Start reading at Finding; Checks bounds the live checks.
package setup

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// Severity says what a finding means.
type Severity string

// The severities, the most severe first.
const (
	Control Severity = "control" // a protection is off
	Fault   Severity = "fault"   // a live check failed
	Feature Severity = "feature" // a feature is off
	OK      Severity = "ok"      // a live check passed
)

// Severities lists all severities, the most severe first.
func Severities() []Severity { return []Severity{Control, Fault, Feature, OK} }

// words stand for a severity in a line.
var words = map[Severity]string{Control: "control off", Fault: "fault", Feature: "feature off", OK: "ok"}

// Finding is one thing that an operator must know. No field holds a secret.
type Finding struct {
	Key      string   // the setting, the parameter, or the name of the check
	Severity Severity // Control, Fault, Feature or OK
	State    string   // the present state, in a few words
	Effect   string   // the effect of the state; "" for OK
	Mend     string   // the change that ends it; "" for OK
}

// String is the line "KEY: state, effect, mend".
func (f Finding) String() string {
	state := words[f.Severity]
	if f.State != "" {
		state += " (" + f.State + ")"
	}
	parts := slices.DeleteFunc([]string{state, f.Effect, f.Mend}, func(s string) bool { return s == "" })
	return f.Key + ": " + strings.Join(parts, ", ")
}

// Report is what is known of an installation.
type Report struct {
	Production bool // false in development mode
	// CheckedAt is the time of the live checks; zero: none ran.
	CheckedAt time.Time
	Findings  []Finding // sorted by severity, then in the order of the settings
}

// NewReport sorts the findings.
func NewReport(production bool, checkedAt time.Time, findings []Finding) Report {
	order := Severities()
	rank := func(f Finding) int { return slices.Index(order, f.Severity) }
	slices.SortStableFunc(findings, func(a, b Finding) int { return rank(a) - rank(b) })
	return Report{production, checkedAt, findings}
}

// Count is the number of findings of a severity.
func (r Report) Count(s Severity) (n int) {
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Checks runs the live checks at most once at a time. Callers that come while a run is under way wait for its
// findings. It is safe for concurrent use.
type Checks struct {
	do func(ctx context.Context) Report

	mu    sync.Mutex
	under *run // nil: no run is under way
}

type run struct {
	done   chan struct{}
	report Report
}

// NewChecks returns Checks of a function that bounds itself in time.
func NewChecks(do func(ctx context.Context) Report) *Checks {
	return &Checks{do: do}
}

// Run returns the findings of a run that ends after the call. A caller that gives up does not end the run.
func (c *Checks) Run(ctx context.Context) (Report, error) {
	c.mu.Lock()
	r := c.under
	if r == nil {
		r = &run{done: make(chan struct{})}
		c.under = r
		go func() {
			r.report = c.do(context.WithoutCancel(ctx))
			c.mu.Lock()
			c.under = nil
			c.mu.Unlock()
			close(r.done)
		}()
	}
	c.mu.Unlock()
	select {
	case <-r.done:
		return r.report, nil
	case <-ctx.Done():
		return Report{}, ctx.Err()
	}
}
