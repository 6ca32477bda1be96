// Package setup serves the extension that lists disabled controls and features and checks the configured
// services live, for administrators (D-INT-09).
package setup

import (
	"context"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/setup"
	"castellan/http/rest"
)

const section = "Extensions: setup"

// Group serves the endpoint.
type Group struct {
	// Report evaluates settings and parameters; Check also runs the live checks, at most once at a time.
	Report func(ctx context.Context) setup.Report
	Check  func(ctx context.Context) (setup.Report, error)
}

var _ rest.Group = Group{}

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Get("/admin/setup", "List disabled controls and features", rest.Tenant, g.show, fault.InvalidField,
			fault.Unavailable).
			Try("check=false").
			Doc("getSetup", "The findings of castellan doctor on the answering node. With check=true the configured "+
				"services are also checked live, for up to ten seconds. The checks connect to servers, and write and delete a "+
				"file, but send no message. Concurrent callers share one run. Effects and remedies are in the language of the "+
				"request; a state that quotes another program is not translated."),
	).For(rest.Admin).Extended()
}

type request struct {
	Check *bool `json:"check" doc:"true: run the live checks"`
}

// report is the state of the installation.
type report struct {
	Mode      string     `json:"mode" enum:"production,development"`
	CheckedAt *rest.Time `json:"checkedAt" example:"2026-11-23T10:00:00.000Z" doc:"time of the live checks; null: not run"`
	Findings  []finding  `json:"findings" doc:"most severe first"`
}

// finding is one control or feature that is off, accepted or not, or the outcome of a live check.
type finding struct {
	Key      string `json:"key" example:"mail.host" doc:"the setting, the parameter, or the name of the check"`
	Severity string `json:"severity" enum:"control,fault,feature,accepted,ok" doc:"fault: a check failed"`
	State    string `json:"state" example:"empty"`
	Effect   string `json:"effect" example:"no mail is sent" doc:"empty for ok"`
	Mend     string `json:"mend" example:"set mail.host and mail.from" doc:"change that resolves it; empty for ok"`
	Reason   string `json:"reason" example:"a team of one" doc:"of doctor.accepted, for accepted; not translated"`
}

func (g Group) show(ctx context.Context, who rest.Caller, in request) (rest.Data[report], error) {
	var r setup.Report
	if in.Check == nil || !*in.Check {
		r = g.Report(ctx)
	} else {
		var err error
		if r, err = g.Check(ctx); err != nil {
			return rest.Data[report]{}, fault.New(fault.Unavailable, "the checks are still running").After(time.Second)
		}
	}
	said := func(text string) string { return rest.InLanguage(text, who.Language) }
	out := report{Mode: "development", CheckedAt: rest.At(r.CheckedAt),
		Findings: rest.Each(r.Findings, func(f setup.Finding) finding {
			return finding{f.Key, string(f.Severity), said(f.State), said(f.Effect), said(f.Mend), f.Reason}
		})}
	if r.Production {
		out.Mode = "production"
	}
	return rest.Data[report]{Data: out}, nil
}
