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
