package device

import (
	"context"
	"fmt"

	"castellan/domain/factor/passkey"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
)

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
	if a.fell {
		writes = append(writes, s.fall(a, by))
	}
	if a.moved == nil {
		return writes
	}
	if s.Passkeys.Backup != BackupAllowed {
		writes = append(writes, s.backup(a, by))
	}
	if !s.refuses(a) {
		writes = append(writes, *a.moved)
	}
	return writes
}

// refuses reports whether the settings refuse an assertion.
func (s *Service) refuses(a Asserted) bool {
	return a.fell && s.Passkeys.RefuseFalls || a.moved != nil && s.Passkeys.Backup == BackupRefused
}

// suspects counts, logs and refuses what is unusual in an assertion, after its rows.
func (s *Service) suspects(ctx context.Context, a Asserted) error {
	if a.fell {
		if err := s.fallen(ctx, a); err != nil {
			return err
		}
	}
	if s.refuses(a) {
		return s.refusedPasskey(ctx, passkey.ErrBackup)
	}
	return nil
}

// backup returns the row of the audit about changed flags of a backup.
func (s *Service) backup(a Asserted, by audit.By) audit.Record {
	outcome := audit.Success
	if s.refuses(a) {
		outcome = audit.Refused
	}
	state := func(eligible, backedUp bool) string {
		switch {
		case backedUp:
			return "backed up"
		case eligible:
			return "synchronisable"
		}
		return "of one device"
	}
	c := a.Passkey
	return audit.Record{At: s.Now(), ActorID: c.UserID, UserID: c.UserID, Action: ActionBackup, Target: c.DeviceID,
		Outcome: outcome, IP: by.IP, RequestID: by.RequestID,
		Detail: state(c.Eligible, c.BackedUp) + " → " + state(a.moved.Eligible, a.moved.BackedUp)}
}

// fall returns the row of the audit about a counter that did not rise.
func (s *Service) fall(a Asserted, by audit.By) audit.Record {
	outcome := audit.Success
	if s.Passkeys.RefuseFalls {
		outcome = audit.Refused
	}
	c := a.Passkey
	return audit.Record{At: s.Now(), ActorID: c.UserID, UserID: c.UserID, Action: ActionCounter, Target: c.DeviceID,
		Outcome: outcome, IP: by.IP, RequestID: by.RequestID,
		Detail: fmt.Sprintf("the counter is %d after %d", a.count, c.Count)}
}

// fallen counts and logs a counter that did not rise, after its row, and refuses it if the settings say so.
func (s *Service) fallen(ctx context.Context, a Asserted) error {
	s.Passkeys.Falls.Add(1)
	s.Log.WarnContext(ctx, "the counter of a passkey did not increase", "device", a.Passkey.DeviceID,
		"stored", a.Passkey.Count, "sent", a.count)
	if s.Passkeys.RefuseFalls {
		return s.refusedPasskey(ctx, passkey.ErrCount)
	}
	return nil
}
