package policy

import (
	"cmp"
	"context"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/money/policy"
	"castellan/http/rest"
)

type explainRequest struct {
	Facts      *facts `json:"facts" doc:"replaces movementId"`
	MovementID string `json:"movementId,omitempty" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
}

// facts are those of a movement that need not exist.
type facts struct {
	rest.Strict
	Kind        string           `json:"kind" enum:"WITHDRAWAL,DEPOSIT,ADJUSTMENT,DECISION,SETTING"`
	At          *rest.Time       `json:"at" doc:"instant of the judgement; default: now"`
	RequestedAt *rest.Time       `json:"requestedAt" doc:"default: at" example:"2026-01-31T10:00:00.000Z"`
	Asset       *asset           `json:"asset"`
	Direction   string           `json:"direction,omitempty" doc:"default: that of the kind" enum:"OUT,IN"`
	Amount      string           `json:"amount,omitempty" doc:"of the asset; default 0" example:"75000"`
	Value       string           `json:"value,omitempty" doc:"in TRY; default: unknown" example:"3000000"`
	Destination destinationFacts `json:"destination,omitzero"`
	Account     accountFacts     `json:"account,omitzero"`
	Device      string           `json:"device" default:"NONE" enum:"NEW,KNOWN,REMEMBERED,NONE"`
	Setting     string           `json:"setting,omitempty" enum:"FEE,TREASURY,LEVEL,RATE"`
	Initiator   initiatorFacts   `json:"initiator"`
}

type destinationFacts struct {
	rest.Strict
	Key      string     `json:"key,omitempty" maxLength:"400" doc:"network, address and tag" example:"BTC/bc1qexample"`
	BookedAt *rest.Time `json:"bookedAt" doc:"entry in the address book; default: none" example:"2026-01-31T10:00:00.000Z"`
	Used     bool       `json:"used,omitempty" doc:"whether the account withdrew to it before"`
}

type accountFacts struct {
	rest.Strict
	ID            string     `json:"id,omitempty" maxLength:"64"`
	Level         int        `json:"level,omitempty" example:"1"`
	AML           string     `json:"aml" default:"notRisky" enum:"notRisky,risky,highRisk"`
	CreatedAt     *rest.Time `json:"createdAt" doc:"default: unknown"`
	CredentialsAt *rest.Time `json:"credentialsAt" doc:"last change of a credential" example:"2026-01-31T10:00:00.000Z"`
	CreditedAt    *rest.Time `json:"creditedAt" doc:"last credit of the asset" example:"2026-01-31T10:00:00.000Z"`
	Withdrew      bool       `json:"withdrew,omitempty" doc:"whether it withdrew before"`
}

type initiatorFacts struct {
	rest.Strict
	Type  string   `json:"type" enum:"USER,OPERATOR,SERVICE"`
	Name  string   `json:"name,omitempty" maxLength:"200" doc:"user id, or name of a service key" example:"shop"`
	Roles []string `json:"roles,omitempty" maxItems:"100"`
}

// read returns the facts. INVALID_FIELD.
func (in facts) read(g Group) (f policy.Facts, err error) {
	var p reader
	f = policy.Facts{Kind: policy.Kind(in.Kind), At: g.Now(), Direction: policy.Direction(in.Direction),
		Destination: policy.DestinationFacts{Key: in.Destination.Key, BookedAt: or(in.Destination.BookedAt),
			Used: in.Destination.Used},
		Account: policy.AccountFacts{ID: in.Account.ID, Level: in.Account.Level, AML: in.Account.AML,
			CreatedAt: or(in.Account.CreatedAt), CredentialsAt: or(in.Account.CredentialsAt),
			CreditedAt: or(in.Account.CreditedAt), Withdrew: in.Account.Withdrew},
		Device: policy.Device(in.Device), Setting: in.Setting,
		Initiator: policy.Initiator{Type: policy.InitiatorType(in.Initiator.Type), Name: in.Initiator.Name,
			Roles: in.Initiator.Roles}}
	if in.Asset != nil {
		f.Asset = policy.Asset{CurrencyCode: in.Asset.CurrencyCode, Network: in.Asset.Network}
	}
	if in.At != nil {
		f.At = in.At.Time
	}
	if f.Requested = f.At; in.RequestedAt != nil {
		f.Requested = in.RequestedAt.Time
	}
	switch f.Kind {
	case policy.Withdrawal:
		f.Direction = cmp.Or(f.Direction, policy.Out)
	case policy.Deposit:
		f.Direction = cmp.Or(f.Direction, policy.In)
	}
	if in.Amount != "" {
		f.Amount = p.amount("facts.amount", in.Amount)
	}
	if f.Rated = in.Value != ""; f.Rated {
		f.Value = p.amount("facts.value", in.Value)
	}
	return f, fault.All(p.Problems)
}

// or returns an instant; zero for none.
func or(at *rest.Time) time.Time { return rest.Or(at, rest.Time{}).Time }

type explanation struct {
	Verdict verdict      `json:"verdict"`
	Rules   []ruleReason `json:"rules" doc:"every rule, by label"`
}

func (explanation) SchemaName() string { return "MoneyExplanation" }

type verdict struct {
	Deny      bool              `json:"deny"`
	Approvals []quorum          `json:"approvals" doc:"each is needed"`
	Until     *rest.Time        `json:"until" doc:"end of the wait; null: none" example:"2026-01-31T10:00:00.000Z"`
	Owner     *policy.OwnerPlan `json:"owner" doc:"what the owner's challenge must have; null: nothing"`
	Rules     []named           `json:"rules" doc:"rules that decide or ask"`
	Trial     []named           `json:"trial" doc:"rules on trial that would"`
}

type quorum struct {
	Group    string `json:"group" doc:"role of the approvers" example:"treasury"`
	Required int    `json:"required" example:"2"`
	Expires  string `json:"expires" example:"72h"`
}

type named struct {
	Label   string `json:"label" example:"Large withdrawals"`
	Version int64  `json:"version" example:"1"`
}

func showNamed(n policy.Named) named { return named(n) }

func showQuorum(q policy.Quorum) quorum { return quorum{q.Group, q.Required, text(q.Expires)} }

type ruleReason struct {
	Label   string  `json:"label" example:"Large withdrawals"`
	Version int64   `json:"version" example:"1"`
	Matched bool    `json:"matched"`
	Reason  string  `json:"reason" schema:"MoneyReason"`
	Used    *string `json:"used" doc:"of the sum that is not exceeded, or else of the first; null: no sums" example:"1"`
	Limit   *string `json:"limit" doc:"of that sum" example:"5000000"`
}

func (g Group) explain(ctx context.Context, _ rest.Caller, in explainRequest) (out rest.Data[explanation], err error) {
	rules := g.Rules()
	var f policy.Facts
	var totals []policy.Total
	switch {
	case (in.Facts == nil) == (in.MovementID == ""):
		return out, fault.Invalid("facts", "send either facts or movementId")
	case in.Facts == nil:
		f, totals, err = g.Stored(ctx, rules, in.MovementID)
	default:
		f, err = in.Facts.read(g)
		totals = alone(f, rules.Sums())
	}
	if err != nil {
		return out, err
	}
	v, considered := rules.Explain(f, totals)
	out.Data = explanation{Rules: make([]ruleReason, len(considered)), Verdict: verdict{Deny: v.Deny,
		Approvals: rest.Each(v.Approvals, showQuorum), Until: rest.At(v.Until), Rules: rest.Each(v.Rules, showNamed),
		Trial: rest.Each(v.Trial, showNamed)}}
	if v.Owner.Asked {
		out.Data.Verdict.Owner = &v.Owner
	}
	for i, c := range considered {
		out.Data.Rules[i] = ruleReason{Label: c.Label, Version: c.Version, Matched: c.Matched, Reason: string(c.Reason)}
		if c.Used != nil {
			out.Data.Rules[i].Used, out.Data.Rules[i].Limit = new(c.Used.String()), new(c.Limit.String())
		}
	}
	return out, nil
}

// alone returns the sums of a movement without any other.
func alone(f policy.Facts, sums []policy.SumKey) []policy.Total {
	totals := make([]policy.Total, len(sums))
	for i, k := range sums {
		totals[i] = policy.Total{Number: 1, Sum: k.Term(f)}
	}
	return totals
}
