// Package setup reports findings about an installation: disabled controls and features, and failed checks (D-INT-09).
//
// The one idea: a finding is text for an operator, with the setting or parameter concerned. The command, the endpoint
// and the log show the same findings, so they are made in one place (cmd/app); this package only holds them.
//
// Start reading at Finding; Checks limits the live checks.
package setup

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"castellan/domain/kit/sorting"
)

// Severity is the severity of a finding.
type Severity string

// The severities, most severe first.
const (
	Control Severity = "control" // a protection is off
	Fault   Severity = "fault"   // a live check failed
	Feature Severity = "feature" // a feature is off
	// Accepted is a control or a feature that is off, with the operator's reason.
	Accepted Severity = "accepted"
	OK       Severity = "ok" // a live check passed
)

// Severities lists all severities, most severe first.
func Severities() []Severity { return []Severity{Control, Fault, Feature, Accepted, OK} }

// words are the names of the severities in a line of text.
var words = map[Severity]string{Control: "control off", Fault: "fault", Feature: "feature off", Accepted: "accepted",
	OK: "ok"}

// Finding is a fact that an operator must know. No field holds a secret.
type Finding struct {
	Key      string   `json:"key"`      // the setting, the parameter, or the name of the check
	Severity Severity `json:"severity"` // Control, Fault, Feature, Accepted or OK
	State    string   `json:"state"`    // the current state, in a few words
	Effect   string   `json:"effect"`   // the effect of the state; "" for OK
	Mend     string   `json:"mend"`     // the remedy; "" for OK
	Reason   string   `json:"reason"`   // why the operator accepts it; "" unless Accepted
}

// String is the line "KEY: state, effect, mend", with the reason in place of the remedy if the finding is accepted.
func (f Finding) String() string {
	state := words[f.Severity]
	if f.State != "" {
		state += " (" + f.State + ")"
	}
	last := f.Mend
	if f.Severity == Accepted {
		last = "because: " + f.Reason
	}
	parts := slices.DeleteFunc([]string{state, f.Effect, last}, func(s string) bool { return s == "" })
	return f.Key + ": " + strings.Join(parts, ", ")
}

// Accept marks the controls and features that an operator accepts, by their keys, with the reasons. A failed check
// stays a fault. unused are the keys without such a finding.
func Accept(findings []Finding, reasons map[string]string) (unused []string) {
	used := map[string]bool{}
	for i, f := range findings {
		if reason := reasons[f.Key]; reason != "" && (f.Severity == Control || f.Severity == Feature) {
			findings[i].Severity, findings[i].Reason, used[f.Key] = Accepted, reason, true
		}
	}
	for key := range reasons {
		if !used[key] {
			unused = append(unused, key)
		}
	}
	slices.Sort(unused)
	return unused
}

// Report is the list of findings of an installation.
type Report struct {
	Production bool // false in development mode
	// CheckedAt is the time of the live checks; zero if none ran.
	CheckedAt time.Time
	Findings  []Finding // sorted by severity, then in the order of the settings
}

// NewReport sorts the findings.
func NewReport(production bool, checkedAt time.Time, findings []Finding) Report {
	order := Severities()
	rank := func(f Finding) int { return slices.Index(order, f.Severity) }
	sorting.Stable(findings, func(a, b Finding) int { return rank(a) - rank(b) })
	return Report{production, checkedAt, findings}
}

// Count returns the number of findings of a severity.
func (r Report) Count(s Severity) (n int) {
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Checks runs the live checks at most once at a time. Concurrent callers wait for the findings of the same run. It is
// safe for concurrent use.
type Checks struct {
	do func(ctx context.Context) Report

	mu    sync.Mutex
	under *run // nil: not running
}

type run struct {
	done   chan struct{}
	report Report
}

// NewChecks returns Checks for a function that limits its own time.
func NewChecks(do func(ctx context.Context) Report) *Checks {
	return &Checks{do: do}
}

// Run returns the findings of a run that ends after the call. A caller that stops waiting does not end the run.
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
