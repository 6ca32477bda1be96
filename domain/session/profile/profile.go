// Package profile owns the changes that administrators make to an account itself: its name, its phone number and its
// mail address (section 4.12 of the interface, decisions D-USR-06, D-USR-07). It also removes lost factors (D-AUTH-20).
//
// The one idea: a change of the destination of codes changes who can log in. So a new phone number or address ends
// every session and closes every challenge. Both the old and the new one are notified, all in one unit with the
// change (D-AUTH-11, D-EXT-07).
//
// Start reading at Service.SetMail.
package profile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/passkey"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/proof/device"
	"castellan/domain/proof/totp"
	"castellan/domain/session/session"
)

// The audit names of the changes.
const (
	ActionName  = "USER_UPDATE_FULLNAME"
	ActionPhone = "USER_UPDATE_PHONENUMBER"
	ActionMail  = "USER_UPDATE_EMAIL"
)

// MailChange is a line of the history of mail addresses.
type MailChange struct {
	ID        int64
	UserID    string
	Old, New  string // Old is "" if the account had none
	ChangedBy string // the id of the administrator
	At        time.Time
}

// AddMailChange inserts a line of the history; the database assigns its id.
type AddMailChange struct{ MailChange }

func (AddMailChange) Table() string { return "email_change" }

// Place is the position of a line in the history, newest first.
type Place struct {
	At time.Time
	ID int64
}

func (c MailChange) Mark() Place { return Place{c.At, c.ID} }

// Query selects the changes of one account; From and To are inclusive, the zero time means no bound.
type Query struct {
	UserID   string
	From, To time.Time
}

// Store reads the history of mail addresses, to which AddMailChange adds. It joins the transaction of its context and
// is safe for concurrent use.
type Store interface {
	// MailChanges returns a page of the selected changes, newest first.
	MailChanges(ctx context.Context, q Query, p page.Query[Place]) (page.Of[MailChange], error)
}

// Service changes accounts for administrators. All fields are required.
type Service struct {
	Users user.Store
	Store Store
	// Changes commits with a Committer that passes ended sessions to this node's revocations (session.Revoking).
	Changes admin.Changes
	Notices challenge.Notices
	Now     func() time.Time
	// Devices and TOTP are for RemoveFactor.
	Devices *device.Service
	TOTP    totp.Store
}

// SetName replaces the name of an account. RECORD_NOT_FOUND.
func (s *Service) SetName(ctx context.Context, by audit.By, id, name, surname string) (user.User, error) {
	return s.change(ctx, by, ActionName, id,
		func(u *user.User) { u.Name, u.Surname = name, surname },
		func(before, _ user.User, _ time.Time) []commit.Write {
			return []commit.Write{user.SetName{UserID: before.ID, Name: name, Surname: surname}}
		})
}

// SetPhone replaces the phone number of an account by a canonical one, and ends all its sessions. The mail address
// and both numbers are notified.
//
// Errors: RECORD_NOT_FOUND; RECORD_ALREADY_EXIST when another account has the number.
func (s *Service) SetPhone(ctx context.Context, by audit.By, id, dial, phone string) (user.User, error) {
	return s.change(ctx, by, ActionPhone, id,
		func(u *user.User) { u.CountryCode, u.Phone = dial, phone },
		func(before, after user.User, now time.Time) []commit.Write {
			set := []commit.Write{user.SetPhone{UserID: before.ID, CV: before.CV, CountryCode: dial, Phone: phone}}
			return append(append(set, session.EndAll(before, now)...),
				s.notify(by, message.PhoneChanged, onlyMail(before), onlyPhone(before), onlyPhone(after))...)
		})
}

// SetMail is SetPhone for the mail address. The history keeps the old one. If the account had none, the phone is
// notified instead.
func (s *Service) SetMail(ctx context.Context, by audit.By, id, mail string) (user.User, error) {
	return s.change(ctx, by, ActionMail, id,
		func(u *user.User) { u.Email, u.EmailVerified = mail, u.EmailVerified && u.Email == mail },
		func(before, after user.User, now time.Time) []commit.Write {
			set := []commit.Write{user.SetMail{UserID: before.ID, CV: before.CV, Mail: mail},
				AddMailChange{MailChange{UserID: before.ID, Old: before.Email, New: mail, ChangedBy: by.UserID, At: now}}}
			return append(append(set, session.EndAll(before, now)...),
				s.notify(by, message.MailChanged, before.Account(), onlyMail(after))...)
		})
}

func onlyMail(u user.User) challenge.Account {
	a := u.Account()
	a.Phone = ""
	return a
}

func onlyPhone(u user.User) challenge.Account {
	a := u.Account()
	a.Mail = ""
	return a
}

// notify returns the writes that notify each of the accounts at its destinations.
func (s *Service) notify(by audit.By, k message.Kind, all ...challenge.Account) (writes []commit.Write) {
	for _, to := range all {
		writes = append(writes, s.Notices.Notice(to, k, nil, by.IP)...)
	}
	return writes
}

// maxFenced bounds how often a change is decided again because the account was changed meanwhile.
const maxFenced = 32

// change applies edit to an account and commits the writes of the change. If edit changes nothing, it writes nothing.
// The audit names the fields and no values.
func (s *Service) change(ctx context.Context, by audit.By, action, id string, edit func(*user.User),
	writes func(before, after user.User, now time.Time) []commit.Write) (after user.User, err error) {
	err = s.decide(ctx, by, action, func(ctx context.Context) (done admin.Done, err error) {
		before, err := s.Users.Get(ctx, id)
		if err != nil {
			return done, err
		}
		after = before
		edit(&after)
		if fields := admin.Differ(before, after); fields != "" {
			done = admin.Done{Target: id, UserID: id, Detail: fields, Writes: writes(before, after, s.Now())}
		}
		return done, nil
	})
	if fault.CodeOf(err) == fault.RecordAlreadyExist {
		err = fault.New(fault.RecordAlreadyExist, "another account has it")
	}
	return after, err
}

// decide makes a change, and decides it again while the account changes meanwhile.
func (s *Service) decide(ctx context.Context, by audit.By, action string,
	do func(context.Context) (admin.Done, error)) error {
	return commit.Retry(maxFenced, func() error { return s.Changes.Do(ctx, by, action, do) })
}

// ActionPreferences is the audit name of a change of preferences.
const ActionPreferences = "USER_PREFERENCES"

// Preferences are a user's preferences for messages.
type Preferences struct {
	Language  string // tr, en or ar; "" for the default of the installation
	Campaigns user.Campaigns
}

// Prefer edits the preferences of the caller and returns the resulting account. Concurrent changes run one after the
// other, each on the result of the other. The audit names the fields. RECORD_NOT_FOUND.
func (s *Service) Prefer(ctx context.Context, by audit.By, edit func(*Preferences)) (u user.User, err error) {
	err = s.Changes.Do(ctx, by, ActionPreferences, func(ctx context.Context) (done admin.Done, err error) {
		if u, err = s.Users.Hold(ctx, by.UserID); err != nil {
			return done, err
		}
		before := Preferences{u.Language, u.Campaigns}
		after := before
		edit(&after)
		u.Language, u.Campaigns = after.Language, after.Campaigns
		if fields := admin.Differ(before, after); fields != "" {
			done = admin.Done{Target: u.ID, UserID: u.ID, Detail: fields, Writes: []commit.Write{
				user.SetPreferences{UserID: u.ID, Language: after.Language, Campaigns: after.Campaigns}}}
		}
		return done, nil
	})
	return u, err
}

// ActionFactor is the audit name of RemoveFactor.
const ActionFactor = "USER_FACTOR_REMOVE"

// Factor is a kind of second factor that an owner registers.
type Factor string

// The kinds.
const (
	Device        Factor = "DEVICE"
	Passkey       Factor = "PASSKEY"
	Authenticator Factor = "AUTHENTICATOR"
)

// RemoveFactor removes all factors of a kind from an account whose owner cannot, and returns their number. The owner is
// notified, open challenges close, and the passkeys that stay settle again.
//
// Errors: RECORD_NOT_FOUND, also for an account without such a factor; UNAVAILABLE.
func (s *Service) RemoveFactor(ctx context.Context, by audit.By, userID string, f Factor) (removed int, err error) {
	err = s.decide(ctx, by, ActionFactor, func(ctx context.Context) (done admin.Done, err error) {
		u, err := s.Users.Get(ctx, userID)
		if err != nil {
			return done, err
		}
		writes, n, told, err := s.removal(ctx, u, f)
		if err == nil && n == 0 {
			err = fault.New(fault.RecordNotFound, "the account has no such factor")
		}
		if err != nil {
			return done, err
		}
		removed = n
		writes = append(writes, passkey.Restart{UserID: u.ID, At: s.Now()})
		return admin.Done{Target: u.ID, UserID: u.ID, Detail: fmt.Sprintf("%s %d", f, n),
			Writes: append(writes, s.Notices.Notice(u.Account(), told, nil, by.IP)...)}, nil
	})
	return removed, err
}

// removal returns the writes that remove the factors of a kind, their number, and the kind of their notice.
func (s *Service) removal(ctx context.Context, u user.User, f Factor) (writes []commit.Write, n int, told message.Kind,
	err error) {
	if f == Authenticator {
		if _, err := s.TOTP.Get(ctx, u.ID); err != nil {
			if fault.CodeOf(err) == fault.TOTPNotDefined {
				err = nil
			}
			return nil, 0, "", err
		}
		return []commit.Write{user.SetTOTP{UserID: u.ID, CV: u.CV}, totp.Remove{UserID: u.ID}}, 1, message.TOTPOff, nil
	}
	devices, err := s.Devices.Store.List(ctx, u.ID)
	if err != nil {
		return nil, 0, "", err
	}
	passkeys, err := s.Devices.ListPasskeys(ctx, u.ID)
	if err != nil {
		return nil, 0, "", err
	}
	left := user.SetPush{UserID: u.ID, CV: u.CV, Owned: len(passkeys) > 0, Handle: u.PasskeyHandle}
	if f == Passkey {
		for _, p := range passkeys {
			writes = append(writes, passkey.Remove{UserID: u.ID, DeviceID: p.DeviceID})
		}
		left.Owned, left.Handle = slices.ContainsFunc(devices, func(d device.Device) bool {
			return d.Status == device.Active
		}), ""
	} else {
		for _, d := range devices {
			writes = append(writes, device.Remove{UserID: u.ID, ID: d.ID})
		}
	}
	return append(writes, left), len(writes), message.DeviceRemoved, nil
}
