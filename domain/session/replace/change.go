package replace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/session/session"
)

// ChangeRequest is the request of a logged-in user to change the password.
type ChangeRequest struct {
	UserID   string
	Old      string
	Password string
	Verify   string
	From     challenge.Starter
}

// Command is the sealed state of a change until the second factor is complete: the hash of the new password, and the
// hashes it was compared with.
type Command struct {
	Hash string      `json:"h"`
	Seen keyring.Sum `json:"s"` // keyed hash of the stored hashes at that time
}

// PrepareChange judges a change before its challenge is created, so no code is sent for a change that must fail
// (D-PWD-04). A wrong old password is counted before it is judged.
//
// Errors: INVALID_FIELD, PASSWORD_WRONG, RATE_LIMITED after too many of those,
// PASSWORD_REUSED, OVERLOADED, UNAVAILABLE.
func (s *Service) PrepareChange(ctx context.Context, r ChangeRequest) (Command, error) {
	var none Command
	place, err := s.Hasher.Admit(s.caller(r.From))
	if err != nil {
		return none, err
	}
	defer place.Leave()
	u, err := s.Users.Get(ctx, r.UserID)
	if err != nil {
		return none, err
	}
	if err := s.check(u, r.Password, r.Verify); err != nil {
		return none, err
	}
	stored, err := s.secret(ctx, place, u.ID)
	if err != nil {
		return none, err
	}
	if err := s.prove(ctx, place, u.ID, r, stored); err != nil {
		return none, err
	}
	active := stored.Hash
	if a, _ := password.Normalize(r.Old); a != "" { // the active one is known now: no need to hash for it
		if b, _ := password.Normalize(r.Password); a != b {
			active = ""
		}
	}
	if err := fresh(ctx, place, r.Password, active, stored.Previous); err != nil {
		return none, err
	}
	hash, err := place.Hash(ctx, r.Password)
	return Command{Hash: hash, Seen: s.seen(u.ID, stored)}, err
}

// prove checks the old password.
func (s *Service) prove(ctx context.Context, place *password.Place, userID string, r ChangeRequest,
	stored user.Secret) error {
	attempt, err := s.Wrong.Charge(ctx, "change/"+userID, "")
	if err != nil {
		return err
	}
	defer attempt.Wrong()
	right, _, err := place.Verify(ctx, r.Old, stored.Hash)
	if right || err != nil { // right, or not judged
		return errors.Join(err, attempt.Return(context.WithoutCancel(ctx)))
	}
	if err := s.Commit.Commit(ctx, record(s.Now(), userID, ActionChange, audit.Refused, session.Clip(r.From),
		"old password refused")); err != nil {
		return err
	}
	return fault.New(fault.PasswordWrong, "the old password is wrong")
}

// seen returns the keyed hash of the stored hashes.
func (s *Service) seen(userID string, stored user.Secret) keyring.Sum {
	return s.Ring.Hash("password history", userID, stored.Hash, stored.Previous)
}

// ChangeAction is the action of UPDATE_PASSWORD. It replaces the password and ends every other session of the user;
// the requesting session stays (D-AUTH-11). The history check holds as long as the stored hashes are unchanged: the
// new password itself is not stored anywhere.
func (s *Service) ChangeAction() challenge.Action {
	return challenge.Action{Code: ActionChange, Flow: challenge.FlowSession, Build: s.change}
}

// everySession exceeds the number of sessions that can begin within the lifetime of a token.
const everySession = 1 << 20

func (s *Service) change(ctx context.Context, x challenge.Execution) (challenge.Result, []commit.Write, error) {
	var none challenge.Result
	var cmd Command
	if err := json.Unmarshal(x.Command, &cmd); err != nil {
		return none, nil, fmt.Errorf("change password: command: %w", err)
	}
	c := x.Challenge
	u, err := s.Users.Get(ctx, c.UserID)
	if err != nil {
		return none, nil, err
	}
	stored, err := s.Users.Secret(ctx, c.UserID)
	if err != nil {
		return none, nil, err
	}
	if !s.Ring.Matches(cmd.Seen, "password history", c.UserID, stored.Hash, stored.Previous) {
		return none, nil, fault.New(fault.InvalidState, "the password was changed meanwhile; start again")
	}
	living, err := s.Sessions.List(ctx, c.UserID, x.Now, everySession)
	if err != nil {
		return none, nil, err
	}
	only := session.NoOtherSessions{UserID: c.UserID, At: x.Now}
	writes := []commit.Write{user.SetPassword{UserID: c.UserID, CV: c.CV, Hash: cmd.Hash},
		session.Unbind{SessionID: c.Starter.SessionID}}
	for _, other := range living {
		only.IDs = append(only.IDs, other.ID)
		if other.ID != c.Starter.SessionID {
			writes = append(writes, session.End{SessionID: other.ID, UserID: c.UserID, At: x.Now},
				session.Ended(other.ID, c.UserID))
		}
	}
	return challenge.Result{Success: true}, append(append(writes, only), s.notice(u, c.Starter.IP)...), nil
}
