package device

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/factor/passkey"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/jose"
)

// ActionCounter is the audit name of a passkey whose counter did not rise: its authenticator may have been copied.
const ActionCounter = "PASSKEY_COUNTER"

// ceremonyLife is how long the answer to options is accepted: the time that a browser gives its user, and the way.
const ceremonyLife = 10 * time.Minute

// Passkeys is what Service needs for passkeys. All fields are required.
type Passkeys struct {
	Store passkey.Store
	Party passkey.Party
	// RefuseFalls refuses an assertion whose counter did not rise; false: it is only reported.
	RefuseFalls bool
	// Backup judges a passkey whose flags BE or BS changed.
	Backup Backup
	// Settle is how long a new passkey does not count for phishingResistant (webauthn.settle).
	Settle time.Duration
	// Falls counts the assertions whose counter did not rise.
	Falls atomic.Int64
}

// The purposes of a ticket, and the domains of its hashes.
const (
	ticketAdd   = "passkey registration"
	ticketLogin = "passkey login"
)

// issue returns a ticket for a ceremony.
func (s *Service) issue(purpose, subject string, carried []byte) string {
	return newTicket(s.Ring, s.Now().Add(ceremonyLife), purpose, subject, carried)
}

// spent returns the writes that use up a ticket; they are fenced.
func (s *Service) spent(purpose, subject, ticket string, until time.Time) (writes []commit.Write) {
	for _, id := range (Fresh{Ring: s.Ring, Domain: "device"}).seen(purpose, subject, ticket) {
		writes = append(writes, See{ID: id, At: s.Now(), Until: until})
	}
	return writes
}

// Create returns the creation options of a passkey for a user, as JSON.
func (s *Service) Create(ctx context.Context, userID string) (json.RawMessage, error) {
	u, err := s.Users.Get(ctx, userID)
	if err != nil {
		return nil, err
	}
	have, err := s.Passkeys.Store.List(ctx, userID)
	if err != nil {
		return nil, err
	}
	handle := decode(u.PasskeyHandle)
	if len(handle) != passkey.HandleBytes {
		handle = make([]byte, passkey.HandleBytes)
		rand.Read(handle)
	}
	return s.Passkeys.Party.Creation(s.issue(ticketAdd, userID, handle),
		passkey.User{Handle: jose.Encode(handle), Name: cmp.Or(u.Email, u.Phone), Shown: u.FullName()}, have), nil
}

// RegisterPasskey prepares the addition of a passkey by the answer to Create, a RegistrationResponseJSON, which is used
// up.
//
// Errors: INVALID_FIELD; DEVICE_SIGNATURE_INVALID whatever is wrong with the answer; RECORD_ALREADY_EXIST;
// RECORD_LIMIT_REACHED; UNAVAILABLE.
func (s *Service) RegisterPasskey(ctx context.Context, userID string, d Registration,
	answer []byte) (Registration, error) {
	if err := d.Check(); err != nil {
		return d, err
	}
	var handle []byte
	var until time.Time
	used := ""
	c, err := s.Passkeys.Party.Register(answer, func(challenge string) (ok bool) {
		handle, until, ok = openTicket(s.Ring, ticketAdd, userID, challenge, passkey.HandleBytes)
		used = challenge
		return ok && s.Now().Before(until)
	})
	if err != nil {
		return d, s.refusedPasskey(ctx, err)
	}
	u, err := s.Users.Get(ctx, userID)
	if err != nil {
		return d, err
	}
	if u.PasskeyHandle != "" && u.PasskeyHandle != jose.Encode(handle) {
		return d, s.refusedPasskey(ctx, passkey.ErrHandle)
	}
	d.Passkey, d.Handle = &c, jose.Encode(handle)
	if err := s.room(ctx, userID, d); err != nil {
		return d, err
	}
	err = s.Commit.Commit(ctx, s.spent(ticketAdd, userID, used, until)...)
	if errors.Is(err, commit.ErrFenced) {
		return d, s.refusedPasskey(ctx, passkey.ErrChallenge)
	}
	return d, err
}

// refusedPasskey logs the reason of a refusal and returns the one answer to all of them.
func (s *Service) refusedPasskey(ctx context.Context, why error) error {
	s.Log.InfoContext(ctx, "passkey refused", "reason", why)
	return Refused()
}

// Asserted is a verified assertion.
type Asserted struct {
	Passkey   passkey.Credential
	Account   user.User // to which the passkey belongs
	Challenge string    // that it signed
	Handle    string    // of the account; "" if the authenticator did not send it
	Kept      string    // the evidence (passkey.Evident)
	Counts    bool      // for phishingResistant
	Use       passkey.Use

	count uint32 // as sent
	fell  bool   // the counter did not rise
	moved *passkey.Moved
}

// Assert verifies an AuthenticationResponseJSON by the passkey that it names, and its user handle by the account of the
// passkey. The handle may be missing (WebAuthn, section 7.2, step 6): a caller that named no account before must refuse
// that. The caller also compares the challenge and the account before it calls Counted. Use must commit with the step
// that accepts it.
//
// Errors: DEVICE_SIGNATURE_INVALID whatever is wrong with it; UNAVAILABLE.
func (s *Service) Assert(ctx context.Context, answer []byte) (Asserted, error) {
	var none Asserted
	if s.Passkeys == nil {
		return none, Refused()
	}
	a, err := s.Passkeys.Party.Parse(answer)
	if err != nil {
		return none, s.refusedPasskey(ctx, err)
	}
	c, err := s.Passkeys.Store.ByCredential(ctx, a.ID)
	if err != nil && fault.CodeOf(err) != fault.RecordNotFound {
		return none, err
	}
	known := err == nil
	if !known { // takes as long as another key
		c = passkey.Credential{ID: a.ID, Key: strangerPasskey}
	}
	if err := a.By(c); err != nil || !known {
		return none, s.refusedPasskey(ctx, cmp.Or(err, passkey.ErrSignature))
	}
	u, err := s.Users.Get(ctx, c.UserID)
	if err != nil && fault.CodeOf(err) != fault.RecordNotFound {
		return none, err
	}
	if err != nil || a.Handle != "" && equal(a.Handle, u.PasskeyHandle) != 1 {
		return none, s.refusedPasskey(ctx, passkey.ErrHandle)
	}
	var moved *passkey.Moved
	if w, changed := a.Moves(c, s.Now()); changed {
		if s.Passkeys.Backup == BackupAllowed {
			w.Since = c.Since
		}
		moved, c.Since = &w, w.Since
	}
	return Asserted{Passkey: c, Account: u, Challenge: a.Challenge, Handle: a.Handle, Kept: passkey.Keep(answer),
		count: a.Count, fell: a.Falls(c.Count), moved: moved, Counts: c.Counts(s.Now(), s.Passkeys.Settle),
		Use: passkey.Use{UserID: c.UserID, DeviceID: c.DeviceID, Seen: c.Count, Count: max(a.Count, c.Count),
			BackedUp: a.BackedUp, At: s.Now()}}, nil
}

// LoginOptions returns the request options of a login by a passkey, as JSON, and the ticket for its answer. They are
// the same for every caller: the browser knows its passkeys.
func (s *Service) LoginOptions() (options json.RawMessage, ticket string) {
	ticket = s.issue(ticketLogin, "", nil)
	return s.Passkeys.Party.Request(HashBody([]byte(ticket)), nil), ticket
}

// Entered verifies the answer to LoginOptions and uses its ticket up, durably. It returns the account, whose
// credentials were those of u when the ticket was used, and the assertion. The caller must check whether the account
// may log in.
//
// Errors: DEVICE_SIGNATURE_INVALID whatever is wrong; UNAVAILABLE.
func (s *Service) Entered(ctx context.Context, ticket string, answer []byte, by audit.By) (u user.User, a Asserted,
	err error) {
	_, until, ok := openTicket(s.Ring, ticketLogin, "", ticket, 0)
	if !ok || !s.Now().Before(until) {
		return u, a, s.refusedPasskey(ctx, passkey.ErrChallenge)
	}
	if a, err = s.Assert(ctx, answer); err != nil {
		return u, a, err
	}
	u = a.Account
	switch {
	case equal(a.Challenge, HashBody([]byte(ticket))) != 1:
		return u, a, s.refusedPasskey(ctx, passkey.ErrChallenge)
	case a.Handle == "": // nothing else named the account
		return u, a, s.refusedPasskey(ctx, passkey.ErrHandle)
	}
	writes := s.spent(ticketLogin, "", ticket, until) // of a ticket that was used before, the counter says nothing
	writes = append(writes, s.reports(a, by)...)
	if !s.refuses(a) {
		writes = append(writes, a.Use, commit.Guard{On: commit.UserCredentials, Key: u.ID, Version: u.CV})
	}
	err = s.Commit.Commit(ctx, writes...)
	if errors.Is(err, commit.ErrFenced) {
		return u, a, s.refusedPasskey(ctx, passkey.ErrChallenge)
	}
	if err == nil {
		err = s.suspects(ctx, a)
	}
	return u, a, err
}

// Allowed are the passkeys of an account that may approve a challenge. The zero value is an account without passkeys.
type Allowed struct {
	// Request returns the request options for the approval, as JSON, given the digest of the intent that it signs; nil if
	// no passkey may approve.
	Request func(digest string) json.RawMessage
	// Only reports that the account has passkeys and no other active device.
	Only bool
	// From is when the first of the passkeys will count, if none does yet.
	From time.Time
}

// Allowed returns the passkeys of a user that meet the need of a challenge.
func (s *Service) Allowed(ctx context.Context, userID string, need passkey.Need) (a Allowed, err error) {
	have, err := s.ListPasskeys(ctx, userID)
	if err != nil || len(have) == 0 {
		return a, err
	}
	devices, err := s.Store.List(ctx, userID)
	if err != nil {
		return a, err
	}
	a.Only = !slices.ContainsFunc(devices, func(d Device) bool { return d.Status == Active })
	meet := passkey.For(need, have, s.Now(), s.Passkeys.Settle)
	if len(meet) == 0 {
		a.From = slices.MinFunc(have, func(x, y passkey.Credential) int {
			return x.From(need, s.Passkeys.Settle).Compare(y.From(need, s.Passkeys.Settle))
		}).From(need, s.Passkeys.Settle)
		return a, nil
	}
	a.Request = func(digest string) json.RawMessage { return s.Passkeys.Party.Request(digest, meet) }
	return a, nil
}

// Meets reports whether an asserted passkey meets a need.
func (s *Service) Meets(ctx context.Context, a Asserted, need passkey.Need) (bool, error) {
	if a.Counts || need == passkey.Any {
		return true, nil
	}
	have, err := s.ListPasskeys(ctx, a.Passkey.UserID)
	return slices.ContainsFunc(passkey.For(need, have, s.Now(), s.Passkeys.Settle), func(c passkey.Credential) bool {
		return c.DeviceID == a.Passkey.DeviceID
	}), err
}

// strangerPasskey verifies the assertion of a passkey that does not exist.
var strangerPasskey = func() passkey.Key {
	stranger, err := passkey.ParseKey([]byte(strangers[ES256].JWK()))
	if err != nil {
		panic(err)
	}
	return stranger
}()

// Backup is what happens to a passkey that begins or ceases to be synchronised or backed up (webauthn.backup).
type Backup string

// The reactions. Reported is a row of the audit, and the passkey settles again if its backup begins.
const (
	BackupAllowed  Backup = "allow"
	BackupReported Backup = "report"
	BackupRefused  Backup = "refuse"
)

// ActionBackup is the audit name of a passkey whose flags BE or BS changed.
const ActionBackup = "PASSKEY_BACKUP"

// Counted reports a counter that did not rise, and changed flags of a backup, in the audit before the answer. It
// refuses them if the settings say so.
//
// Errors: DEVICE_SIGNATURE_INVALID, UNAVAILABLE.
func (s *Service) Counted(ctx context.Context, a Asserted, by audit.By) error {
	writes := s.reports(a, by)
	if len(writes) == 0 {
		return nil
	}
	if err := s.Commit.Commit(ctx, writes...); err != nil {
		return err
	}
	return s.suspects(ctx, a)
}

// reports returns the writes about what is unusual in an assertion.
func (s *Service) reports(a Asserted, by audit.By) (writes []commit.Write) {
	report := func(action string, refused bool, detail string) {
		row := audit.Record{At: s.Now(), ActorID: a.Passkey.UserID, UserID: a.Passkey.UserID, Action: action,
			Target: a.Passkey.DeviceID, Outcome: audit.Success, IP: by.IP, RequestID: by.RequestID, Detail: detail}
		if refused {
			row.Outcome = audit.Refused
		}
		writes = append(writes, row)
	}
	if a.fell {
		report(ActionCounter, s.Passkeys.RefuseFalls, fmt.Sprintf("the counter is %d after %d", a.count, a.Passkey.Count))
	}
	if a.moved == nil {
		return writes
	}
	if s.Passkeys.Backup != BackupAllowed {
		report(ActionBackup, s.refuses(a), backupState(a.Passkey.Eligible, a.Passkey.BackedUp)+" → "+
			backupState(a.moved.Eligible, a.moved.BackedUp))
	}
	if !s.refuses(a) {
		writes = append(writes, *a.moved)
	}
	return writes
}

// backupState names the state that the flags BE and BS describe.
func backupState(eligible, backedUp bool) string {
	switch {
	case backedUp:
		return "backed up"
	case eligible:
		return "synchronisable"
	}
	return "of one device"
}

// refuses reports whether the settings refuse an assertion.
func (s *Service) refuses(a Asserted) bool {
	return a.fell && s.Passkeys.RefuseFalls || a.moved != nil && s.Passkeys.Backup == BackupRefused
}

// suspects counts, logs and refuses what is unusual in an assertion, after its rows.
func (s *Service) suspects(ctx context.Context, a Asserted) error {
	if a.fell {
		s.Passkeys.Falls.Add(1)
		s.Log.WarnContext(ctx, "the counter of a passkey did not increase", "device", a.Passkey.DeviceID,
			"stored", a.Passkey.Count, "sent", a.count)
	}
	switch {
	case a.fell && s.Passkeys.RefuseFalls:
		return s.refusedPasskey(ctx, passkey.ErrCount)
	case s.refuses(a):
		return s.refusedPasskey(ctx, passkey.ErrBackup)
	}
	return nil
}
