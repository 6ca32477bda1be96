package mfa

import "context"

// Store keeps the configuration. Every method joins the transaction that its
// context carries (commit.Committer.InTx) and else runs in one of its own. It
// is safe for concurrent use and passes mfatest.Run.
//
// A Change method loads one record, gives it to change and saves what that
// returns, as one step: no other change of the record comes between, and when
// change returns an error nothing is saved and the error is returned.
// RECORD_NOT_FOUND when there is no such record.
type Store interface {
	// Methods, Actions and Policies list in order of creation; methods and actions
	// of the codes, or all where none is named.
	Methods(ctx context.Context, codes ...string) ([]Method, error)
	Actions(ctx context.Context, codes ...string) ([]Action, error)
	Policies(ctx context.Context) ([]Policy, error)

	// AddMethod and AddAction insert a record; RECORD_ALREADY_EXIST when its
	// code is taken, also under concurrent calls.
	AddMethod(ctx context.Context, m Method) error
	AddAction(ctx context.Context, a Action) error
	// AddPolicy inserts a policy and returns its id; p.ID is ignored.
	// RECORD_ALREADY_EXIST when the action has one of the type for the entity,
	// expired or not (D-MFA-08), also under concurrent calls.
	AddPolicy(ctx context.Context, p Policy) (int64, error)

	// ChangeMethod and ChangeAction find the record by its code, which stays
	// as it is whatever change returns.
	ChangeMethod(ctx context.Context, code string, change func(Method) (Method, error)) error
	ChangeAction(ctx context.Context, code string, change func(Action) (Action, error)) error
	// ChangeCommon changes a policy of type COMMON: its name, end, methods and
	// numbers. Its id, action, type and entity stay as they are.
	ChangeCommon(ctx context.Context, id int64, change func(Policy) (Policy, error)) error
}

// Load reads the whole configuration.
func Load(ctx context.Context, s Store) (*Catalog, error) {
	methods, err := s.Methods(ctx)
	if err != nil {
		return nil, err
	}
	actions, err := s.Actions(ctx)
	if err != nil {
		return nil, err
	}
	policies, err := s.Policies(ctx)
	if err != nil {
		return nil, err
	}
	return NewCatalog(methods, actions, policies), nil
}
