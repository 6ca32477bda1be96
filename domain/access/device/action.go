package device

import (
	"context"
	"encoding/json"
	"fmt"

	"castellan/domain/access/challenge"
	"castellan/domain/access/mfa"
	"castellan/domain/access/user"
	"castellan/domain/delivery/message"
	"castellan/domain/kit/audit"
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
	return d, s.room(ctx, userID, d.Key)
}

// room reports whether an account may have one more device with this key.
func (s *Service) room(ctx context.Context, userID string, k Key) error {
	ds, err := s.Store.List(ctx, userID)
	if err != nil {
		return err
	}
	for _, d := range ds {
		if d.Key.JWK() == k.JWK() {
			return fault.New(fault.RecordAlreadyExist, "a device with this key is registered already")
		}
	}
	if len(ds) >= MaxDevices {
		return fault.New(fault.RecordLimitReached, "an account has at most %d devices", MaxDevices)
	}
	return nil
}

// Removable prepares the removal of a device; RECORD_NOT_FOUND for one that does not belong to the user.
func (s *Service) Removable(ctx context.Context, userID, deviceID string) (Removal, error) {
	d, err := s.Store.Get(ctx, deviceID)
	if fault.CodeOf(err) == fault.RecordNotFound || err == nil && d.UserID != userID {
		return Removal{}, fault.New(fault.RecordNotFound, "there is no such device")
	}
	return Removal{d.ID, d.Name()}, err
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
				{Key: mfa.HeaderKey, Value: r.Key.Thumbprint()}, {Key: mfa.HeaderPlatform, Value: r.Platform},
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
	if err := s.room(ctx, c.UserID, r.Key); err != nil {
		return none, err
	}
	d := Device{ID: id.New(x.Now), UserID: c.UserID, Key: r.Key, Brand: r.Brand, Model: r.Model,
		Description: r.Description, Platform: r.Platform,
		Status: Active, CreatedAt: x.Now}
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
	err = s.Commit.Commit(ctx, append(s.Notices.Notice(u.Account(), message.DeviceAdded, nil, c.Starter.IP),
		user.SetPush{UserID: c.UserID, CV: c.CV, Owned: true}, Add{d}, record(x, ActionAdd, d.ID))...)
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
	found, left := false, false
	for _, d := range ds {
		found = found || d.ID == r.DeviceID
		left = left || d.ID != r.DeviceID && d.Status == Active
	}
	if !found {
		return none, fault.New(fault.RecordNotFound, "there is no such device")
	}
	u, err := s.Users.Get(ctx, c.UserID)
	if err != nil {
		return none, err
	}
	err = s.Commit.Commit(ctx, append(s.Notices.Notice(u.Account(), message.DeviceRemoved, nil, c.Starter.IP),
		user.SetPush{UserID: c.UserID, CV: c.CV, Owned: left}, Remove{UserID: c.UserID, ID: r.DeviceID},
		record(x, ActionRemove, r.DeviceID))...)
	return challenge.Result{Success: true}, err
}

func record(x challenge.Execution, action, target string) audit.Record {
	c := x.Challenge
	return audit.Record{At: x.Now, ActorID: c.UserID, UserID: c.UserID, Action: action, Target: target,
		Outcome: audit.Success, IP: c.Starter.IP, RequestID: c.Starter.RequestID}
}
