package policy

import (
	"context"
	"time"

	"castellan/domain/money/policy"
	"castellan/http/rest"
)

type rehearseRequest struct {
	Rule ruleFields `json:"rule"`
	Days int        `json:"days,omitempty" default:"30" minimum:"1" maximum:"400"`
}

type rehearsal struct {
	Considered  int64    `json:"considered" doc:"movements of its kinds with stored facts" example:"120"`
	Denied      int64    `json:"denied" example:"1"`
	Held        int64    `json:"held" example:"3"`
	OwnerAsked  int64    `json:"ownerAsked" example:"1"`
	Unknown     int64    `json:"unknown" doc:"not judged: a fact that the rule asks for was not stored" example:"1"`
	Value       string   `json:"value" doc:"of those that it stops, in TRY" example:"7500000"`
	Accounts    int      `json:"accounts" doc:"of those that it stops" example:"2"`
	MedianWait  *string  `json:"medianWait" doc:"null: none waits" example:"24h"`
	LongestWait *string  `json:"longestWait" example:"24h"`
	Examples    []string `json:"examples" doc:"ids of at most 5 that it stops"`
	Truncated   bool     `json:"truncated" doc:"more than 100,000 movements; the last ones are left out"`
}

func (rehearsal) SchemaName() string { return "MoneyRehearsal" }

func (g Group) rehearse(ctx context.Context, _ rest.Caller, in rehearseRequest) (out rest.Data[rehearsal], err error) {
	r, err := in.Rule.rule()
	if err = within("rule.", err); err != nil {
		return out, err
	}
	found, truncated, err := g.Admin.Rehearse(ctx, g.Now().Add(-time.Duration(in.Days)*policy.Day), r)
	if err != nil {
		return out, err
	}
	h := found[0]
	out.Data = rehearsal{Considered: h.Considered, Denied: h.Denied, Held: h.Held, OwnerAsked: h.Owner,
		Unknown: h.Unknown, Value: h.Value.String(), Accounts: h.Accounts, Examples: append([]string{}, h.Examples...),
		Truncated: truncated}
	if n := len(h.Waits); n > 0 {
		out.Data.MedianWait, out.Data.LongestWait = new(minutes(h.Waits[n/2])), new(minutes(h.Waits[n-1]))
	}
	return out, nil
}

// minutes returns a wait in whole minutes, rounded up, as rules have spans.
func minutes(wait time.Duration) string {
	return text(policy.Span((wait + time.Minute - 1).Truncate(time.Minute)))
}
