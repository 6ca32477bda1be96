package profile

import (
	"context"
	"fmt"
	"slices"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/passkey"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/proof/device"
	"castellan/domain/proof/totp"
)

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
