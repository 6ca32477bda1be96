// Package remembered owns the clients that an account has asked to remember: for some days, the key of a client counts
// as one method of an action (decision D-AUTH-17).
//
// The one idea: a remembered client is a completed method that is kept. It names the method that the owner really
// completed, and counts for that method only; the policy's other requirements stay. It belongs to an account, a key and
// an action, and to the credential version under which it was made. So every change of the credentials ends it, without
// a write.
//
// Start reading at Chosen and Client.Counts, which are all of its rules. Package stepup applies them at the start of a
// challenge, the owner of the challenge at its end.
package remembered

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/id"
)

// The audit names of the creation and the end of a remembered client.
const (
	ActionAdd = "REMEMBER"
	ActionEnd = "REMEMBER_END"
)

// Client is a remembered client: a browser or an app.
type Client struct {
	ID         string
	UserID     string
	Thumbprint string // of its key (RFC 7638)
	Action     string
	Method     challenge.Name // the one that counts as completed
	CV         int64          // credential version of the account
	CreatedAt  time.Time
	LastUsedAt time.Time
	ExpiresAt  time.Time
	IP         string
	// Description is what the client said about itself.
	Description string
}

// Until returns the instant at which the client is forgotten under a policy that remembers for some days: its own end.
// It is an earlier one if the policy was shortened since.
func (c Client) Until(days int) time.Time {
	if end := c.CreatedAt.AddDate(0, 0, days); end.Before(c.ExpiresAt) {
		return end
	}
	return c.ExpiresAt
}

// Counts reports whether the client still counts for an account with a credential version, under a policy that
// remembers for some days.
func (c Client) Counts(now time.Time, cv int64, days int) bool {
	return days > 0 && c.CV == cv && now.Before(c.Until(days))
}

// Eligible reports whether a method of a challenge may be remembered. A method that its action must prove, and a push
// that must sign the intent, are always completed again.
func Eligible(c challenge.Challenge, m challenge.Method) bool {
	return !m.Mandatory && !(m.Name == challenge.PUSH && c.SignIntent)
}

// Chosen returns the method that a completed challenge lets its client remember: of those that were completed, the
// first in the order of the policy. false: it remembers none. That is so without a key or the policy option, and
// without an account. It is also so if the client was remembered already: the days count from a real completion.
func Chosen(c challenge.Challenge) (challenge.Method, bool) {
	if c.Key == "" || c.RememberDays <= 0 || !c.Proven || !c.Kind.Owned() || c.Remembered() {
		return challenge.Method{}, false
	}
	i := slices.IndexFunc(c.Methods, func(m challenge.Method) bool { return m.Order > 0 && Eligible(c, m) })
	if i < 0 {
		return challenge.Method{}, false
	}
	return c.Methods[i], true
}

// Writes returns the writes by which a completed challenge has its client remembered; none if Chosen has no method.
// They commit with the completion, guarded by the credentials of the account.
func Writes(c challenge.Challenge, now time.Time, by audit.By) []commit.Write {
	m, ok := Chosen(c)
	if !ok {
		return nil
	}
	if by.UserID == "" {
		by.UserID = c.UserID
	}
	made := Client{ID: id.New(now), UserID: c.UserID, Thumbprint: c.Key, Action: c.Action, Method: m.Name, CV: c.CV,
		CreatedAt: now, LastUsedAt: now, ExpiresAt: now.AddDate(0, 0, c.RememberDays), IP: c.Starter.IP,
		Description: cmp.Or(c.Starter.Description, strings.TrimSpace(c.Starter.Brand+" "+c.Starter.Model))}
	return []commit.Write{Add{made}, by.Did(audit.Record{At: now, UserID: c.UserID, Action: ActionAdd, Target: made.ID,
		Detail: string(m.Name) + " of " + c.Action + " until " + made.ExpiresAt.UTC().Format(time.RFC3339)})}
}

// Add has a client remembered. It replaces the one of the same account, key and action.
type Add struct{ Client }

func (Add) Table() string { return "remembered" }
func (w Add) Row() string { return w.UserID + " " + w.Thumbprint + " " + w.Action }

// Used records that a client counted as a method. It is fenced: the client must still be remembered.
type Used struct {
	ID, UserID, Thumbprint string
	At                     time.Time
}

func (Used) Table() string { return "remembered" }

// Fence makes two uses of one client go into different batches.
func (w Used) Fence() (string, int64) { return w.ID, w.At.UnixMilli() }

// Store reads remembered clients. Writes of a challenge go through commit.Committer as the values above. It is safe for
// concurrent use.
type Store interface {
	// Find reads the client of an account with a key for an action, whether it still counts or not; RECORD_NOT_FOUND.
	Find(ctx context.Context, userID, thumbprint, action string) (Client, error)
	// List returns the clients of an account which expire after now and have its current credential version, newest
	// first, at most limit.
	List(ctx context.Context, userID string, now time.Time, limit int) ([]Client, error)
	// Of is List for an action over all accounts.
	Of(ctx context.Context, action string, now time.Time, limit int) ([]Client, error)
	// Remove forgets a client of an account; RECORD_NOT_FOUND for any other id. Of concurrent callers one succeeds.
	Remove(ctx context.Context, userID, id string) error
	// RemoveAll forgets all clients of an account and returns how many of them List would have returned.
	RemoveAll(ctx context.Context, userID string, now time.Time) (int, error)
	// Purge removes clients that expired before an instant, and those of accounts with another credential version.
	Purge(ctx context.Context, expired time.Time) error
}

// maxListed bounds the list of an account's remembered clients.
const maxListed = 1000

// Service lists and forgets the clients of an account. All fields are required.
type Service struct {
	Store   Store
	Catalog func() *mfa.Catalog
	Commit  commit.Committer
	Now     func() time.Time
}

// List returns the caller's remembered clients that still count, newest first. ExpiresAt is the end under the current
// policy, which may also be one for an address.
func (s *Service) List(ctx context.Context, userID, ip string) ([]Client, error) {
	now, catalog := s.Now(), s.Catalog()
	all, err := s.Store.List(ctx, userID, now, maxListed)
	if err != nil {
		return nil, err
	}
	out := make([]Client, 0, len(all))
	for _, c := range all {
		plan := catalog.Plan(now, c.Action, userID, ip)
		if c.Counts(now, c.CV, plan.RememberDays) && plan.Lists(c.Method) {
			c.ExpiresAt = c.Until(plan.RememberDays)
			out = append(out, c)
		}
	}
	return out, nil
}

// End forgets one of the caller's clients. RECORD_NOT_FOUND for any other id, whether it exists or not.
func (s *Service) End(ctx context.Context, who audit.By, id string) error {
	return s.Commit.InTx(ctx, func(ctx context.Context) error {
		if err := s.Store.Remove(ctx, who.UserID, id); err != nil {
			return err
		}
		return s.Commit.Commit(ctx, s.record(who, id, ""))
	})
}

// EndAll forgets all of the caller's clients and returns how many were remembered. A repetition returns 0.
func (s *Service) EndAll(ctx context.Context, who audit.By) (n int, err error) {
	err = s.Commit.InTx(ctx, func(ctx context.Context) error {
		if n, err = s.Store.RemoveAll(ctx, who.UserID, s.Now()); err != nil || n == 0 {
			return err
		}
		return s.Commit.Commit(ctx, s.record(who, who.UserID, strconv.Itoa(n)+" clients"))
	})
	return n, err
}

func (s *Service) record(who audit.By, target, detail string) audit.Record {
	return who.Did(audit.Record{At: s.Now(), UserID: who.UserID, Action: ActionEnd, Target: target, Detail: detail})
}
