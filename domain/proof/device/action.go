package device

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/factor/passkey"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
)

// The codes of the actions, which are also their names in the audit.
const (
	ActionAdd    = mfa.DeviceAdd
	ActionRemove = mfa.DeviceRemove
)

// Removal is the command of DEVICE_REMOVE.
type Removal struct {
	DeviceID string `json:"deviceId"`
	Name     string `json:"name"` // for the table of an approval
}

// Register prepares the addition of a device: its key must sign the proof. Errors: INVALID_FIELD, those of Present,
// RECORD_ALREADY_EXIST for a key that the account already has, RECORD_LIMIT_REACHED.
func (s *Service) Register(ctx context.Context, userID string, r Request, d Registration) (Registration, error) {
	if err := d.Check(); err != nil {
		return d, err
	}
	if err := s.Enrolling(ctx, r, userID, d.Key); err != nil {
		return d, err
	}
	return d, s.room(ctx, userID, d)
}

// room reports whether an account may have one more device with the key of r.
func (s *Service) room(ctx context.Context, userID string, r Registration) error {
	ds, err := s.Store.List(ctx, userID)
	if err != nil {
		return err
	}
	ps, err := s.ListPasskeys(ctx, userID)
	if err != nil {
		return err
	}
	same := slices.ContainsFunc(ds, func(d Device) bool { return r.Passkey == nil && d.Key.JWK() == r.Key.JWK() }) ||
		slices.ContainsFunc(ps, func(p passkey.Credential) bool {
			return r.Passkey != nil && bytes.Equal(p.ID, r.Passkey.ID)
		})
	if same {
		return fault.New(fault.RecordAlreadyExist, "a device with this key is already registered")
	}
	if len(ds)+len(ps) >= MaxDevices {
		return fault.New(fault.RecordLimitReached, "an account has at most %d devices", MaxDevices)
	}
	return nil
}

// Removable prepares the removal of a device; RECORD_NOT_FOUND for one that does not belong to the user.
func (s *Service) Removable(ctx context.Context, userID, deviceID string) (Removal, error) {
	d, err := s.Store.Get(ctx, deviceID)
	if err == nil && d.UserID == userID {
		return Removal{d.ID, d.Name()}, nil
	}
	if err != nil && fault.CodeOf(err) != fault.RecordNotFound {
		return Removal{}, err
	}
	ps, err := s.ListPasskeys(ctx, userID)
	if err != nil {
		return Removal{}, err
	}
	for _, p := range ps {
		if p.DeviceID == deviceID {
			return Removal{deviceID, name(p.Brand, p.Model, p.Description)}, nil
		}
	}
	return Removal{}, fault.New(fault.RecordNotFound, "there is no such device")
}

// ListPasskeys returns the passkeys of a user, newest first.
func (s *Service) ListPasskeys(ctx context.Context, userID string) ([]passkey.Credential, error) {
	if s.Passkeys == nil {
		return nil, nil
	}
	return s.Passkeys.Store.List(ctx, userID)
}

// AddAction is the action of DEVICE_ADD. It raises the credential version, which closes earlier challenges
// (D-AUTH-11).
func (s *Service) AddAction() challenge.Action {
	return challenge.Action{Code: ActionAdd, Flow: challenge.FlowSession, Exec: s.add,
		Describe: func(command []byte) []challenge.Detail {
			var r Registration
			if json.Unmarshal(command, &r) != nil {
				return nil
			}
			return []challenge.Detail{{Key: mfa.HeaderSubject, Value: name(r.Brand, r.Model, r.Description)},
				{Key: mfa.HeaderDescription, Value: r.Description},
				{Key: mfa.HeaderKey, Value: r.thumbprint()}, {Key: mfa.HeaderPlatform, Value: r.Platform},
				{Key: mfa.HeaderTarget, Value: r.Target}}
		}}
}

// RemoveAction is the action of DEVICE_REMOVE. It raises the credential version too.
func (s *Service) RemoveAction() challenge.Action {
	return challenge.Action{Code: ActionRemove, Flow: challenge.FlowSession, Exec: s.remove,
		Describe: func(command []byte) []challenge.Detail {
			var r Removal
			if json.Unmarshal(command, &r) != nil {
				return nil
			}
			return []challenge.Detail{{Key: mfa.HeaderSubject, Value: r.Name}, {Key: mfa.HeaderDeviceID, Value: r.DeviceID}}
		}}
}

func (s *Service) add(ctx context.Context, x challenge.Execution) (challenge.Result, error) {
	var none challenge.Result
	var r Registration
	if err := json.Unmarshal(x.Command, &r); err != nil {
		return none, fmt.Errorf("device: command: %w", err)
	}
	c := x.Challenge
	if err := s.room(ctx, c.UserID, r); err != nil {
		return none, err
	}
	have, err := s.changeable(ctx, c)
	if err != nil {
		return none, err
	}
	d := Device{ID: id.New(x.Now), UserID: c.UserID, Key: r.Key, Brand: r.Brand, Model: r.Model,
		Description: r.Description, Platform: r.Platform, Status: Active, CreatedAt: x.Now}
	if r.Target != "" {
		d.Target = s.Ring.Seal([]byte(r.Target), TargetData(d.UserID, d.ID))
	}
	data, err := json.Marshal(map[string]string{"deviceId": d.ID})
	if err != nil {
		return none, err
	}
	u, err := s.Users.Get(ctx, c.UserID)
	if err != nil {
		return none, err
	}
	handle, added := u.PasskeyHandle, commit.Write(Add{d})
	if p := r.Passkey; p != nil {
		if handle != "" && handle != r.Handle {
			return none, fault.New(fault.RecordAlreadyExist, "another passkey was registered meanwhile")
		}
		handle = r.Handle
		p.DeviceID, p.UserID, p.CreatedAt = d.ID, d.UserID, d.CreatedAt
		p.Brand, p.Model, p.Description, p.Platform = d.Brand, d.Model, d.Description, d.Platform
		p.Trust = passkey.Joining(x.Now, registered(u), have, c.ByPasskey(), c.Recovered)
		added = passkey.Add{Credential: *p}
	}
	writes := append(x.Changed(ActionAdd, d.ID), s.Notices.Notice(u.Account(), message.DeviceAdded, nil, c.Starter.IP)...)
	err = s.Commit.Commit(ctx, append(writes, user.SetPush{UserID: c.UserID, CV: c.CV, Owned: true, Handle: handle},
		added)...)
	return challenge.Result{Success: true, Data: data}, err
}

func (s *Service) remove(ctx context.Context, x challenge.Execution) (challenge.Result, error) {
	var none challenge.Result
	var r Removal
	if err := json.Unmarshal(x.Command, &r); err != nil {
		return none, fmt.Errorf("device: command: %w", err)
	}
	c := x.Challenge
	ds, err := s.Store.List(ctx, c.UserID)
	if err != nil {
		return none, err
	}
	ps, err := s.changeable(ctx, c)
	if err != nil {
		return none, err
	}
	found, left, handled := false, false, false
	for _, d := range ds {
		found = found || d.ID == r.DeviceID
		left = left || d.ID != r.DeviceID && d.Status == Active
	}
	removed := commit.Write(Remove{UserID: c.UserID, ID: r.DeviceID})
	for _, p := range ps {
		if p.DeviceID == r.DeviceID {
			found, removed = true, passkey.Remove{UserID: c.UserID, DeviceID: r.DeviceID}
		} else {
			left, handled = true, true
		}
	}
	if !found {
		return none, fault.New(fault.RecordNotFound, "there is no such device")
	}
	u, err := s.Users.Get(ctx, c.UserID)
	if err != nil {
		return none, err
	}
	handle := ""
	if handled {
		handle = u.PasskeyHandle
	}
	writes := append(x.Changed(ActionRemove, r.DeviceID),
		s.Notices.Notice(u.Account(), message.DeviceRemoved, nil, c.Starter.IP)...)
	err = s.Commit.Commit(ctx, append(writes, user.SetPush{UserID: c.UserID, CV: c.CV, Owned: left, Handle: handle},
		removed)...)
	return challenge.Result{Success: true}, err
}

// changeable returns the passkeys of the account of a completed challenge, which must be one that may change them.
func (s *Service) changeable(ctx context.Context, c challenge.Challenge) ([]passkey.Credential, error) {
	have, err := s.ListPasskeys(ctx, c.UserID)
	if err == nil {
		err = c.MayChangeFactors(len(have) > 0)
	}
	return have, err
}

// registered returns when an account was made if it has no factor that a passkey of its first hour could replace; zero
// otherwise. An import brings accounts that are older than their record, with their authenticators.
func registered(u user.User) (at time.Time) {
	if !u.TOTP && !u.Push {
		at = u.CreatedAt
	}
	return at
}
