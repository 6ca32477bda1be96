package firewall

import "context"

// Store keeps the rules. Every method joins the transaction of its context (commit.Committer.InTx), and otherwise runs
// in its own. It is safe for concurrent use.
type Store interface {
	// Rules lists the selected rules in order of creation.
	Rules(ctx context.Context, q Query) ([]Rule, error)
	// Add inserts a rule; RECORD_ALREADY_EXIST when a rule of any application has its label, even under concurrent
	// calls.
	Add(ctx context.Context, r Rule) error
	// Change loads the rule of a label, passes it to change and saves the result, as one step: no other change of the
	// rule comes between. If change returns an error, nothing is saved and Change returns the error. The application,
	// label, type and type of entity are unchanged. RECORD_NOT_FOUND when the rule does not exist.
	Change(ctx context.Context, label string, change func(Rule) (Rule, error)) error
}

// Query selects rules; nil: any application, any status.
type Query struct {
	AppID  *string
	Status *Status
	Labels []string // each selects at most one rule
}
