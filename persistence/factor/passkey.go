package factor

import (
	"context"
	"fmt"
	"strings"

	"github.com/uptrace/bun"

	"castellan/domain/factor/passkey"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Passkeys struct{ db *engine.DB }

func NewPasskeys(db *engine.DB) passkey.Store { return Passkeys{db} }

type passkeyRow struct {
	bun.BaseModel `bun:"table:passkey,alias:t"`

	DeviceID     string `bun:",pk"`
	UserID       string
	CredentialID []byte
	PublicKey    string
	AAGUID       []byte `bun:"aaguid"`
	Eligible     bool
	BackedUp     bool
	SignCount    int64
	Transports   string // separated by commas
	Brand        string
	Model        string
	Description  string
	Platform     string
	CreatedAt    int64
	LastUsedAt   int64
	// SettlingSince is 0 for a passkey that was settled at its registration, and -1 for one that an older release added.
	SettlingSince int64
	RestartedAt   int64
}

func (r passkeyRow) credential() (passkey.Credential, error) {
	k, err := passkey.ParseKey([]byte(r.PublicKey))
	if err != nil || len(r.AAGUID) != 16 {
		return passkey.Credential{}, fmt.Errorf("passkey %s: stored key: %w", r.DeviceID, err)
	}
	c := passkey.Credential{DeviceID: r.DeviceID, UserID: r.UserID, ID: r.CredentialID, Key: k,
		AAGUID: [16]byte(r.AAGUID), Eligible: r.Eligible, BackedUp: r.BackedUp, Count: uint32(r.SignCount),
		Brand: r.Brand, Model: r.Model, Description: r.Description, Platform: r.Platform,
		CreatedAt: engine.Time(r.CreatedAt), LastUsedAt: engine.Time(r.LastUsedAt),
		Trust: passkey.Trust{Since: engine.Time(r.SettlingSince), Restarted: engine.Time(r.RestartedAt)}}
	if r.SettlingSince < 0 {
		c.Since = c.CreatedAt
	}
	if r.Transports != "" {
		c.Transports = strings.Split(r.Transports, ",")
	}
	return c, nil
}

// usedPasskeyRow is the row of passkey.Use and passkey.Remove.
type usedPasskeyRow struct {
	bun.BaseModel `bun:"table:passkey"`

	DeviceID   string
	UserID     string
	Seen       int64
	SignCount  int64
	BackedUp   bool
	LastUsedAt int64
}

type movedPasskeyRow struct {
	bun.BaseModel `bun:"table:passkey"`

	DeviceID      string
	UserID        string
	Eligible      bool
	BackedUp      bool
	SettlingSince int64
}

var PasskeyFences = []engine.Kind{
	engine.Fenced("UPDATE passkey SET sign_count = v.sign_count, backed_up = v.backed_up, "+
		"last_used_at = v.last_used_at {FROM v} WHERE passkey.device_id = v.device_id AND passkey.user_id = v.user_id "+
		"AND passkey.sign_count = v.seen {RETURNING passkey.device_id}",
		func(w passkey.Use) usedPasskeyRow {
			return usedPasskeyRow{DeviceID: w.DeviceID, UserID: w.UserID, Seen: int64(w.Seen), SignCount: int64(w.Count),
				BackedUp: w.BackedUp, LastUsedAt: engine.Millis(w.At)}
		}),
}

var PasskeyWrites = []engine.Kind{
	engine.Insert(func(w passkey.Add) passkeyRow {
		return passkeyRow{DeviceID: w.DeviceID, UserID: w.UserID, CredentialID: w.ID, PublicKey: w.Key.JWK(),
			AAGUID: w.AAGUID[:], Eligible: w.Eligible, BackedUp: w.BackedUp, SignCount: int64(w.Count),
			Transports: strings.Join(w.Transports, ","), Brand: w.Brand, Model: w.Model, Description: w.Description,
			Platform: w.Platform, CreatedAt: engine.Millis(w.CreatedAt), LastUsedAt: engine.Millis(w.LastUsedAt),
			SettlingSince: engine.Millis(w.Since), RestartedAt: engine.Millis(w.Restarted)}
	}),
	engine.Update("DELETE FROM passkey {USING v} WHERE passkey.device_id = v.device_id AND passkey.user_id = v.user_id",
		func(w passkey.Remove) usedPasskeyRow { return usedPasskeyRow{DeviceID: w.DeviceID, UserID: w.UserID} }),
	engine.Update("UPDATE passkey SET eligible = v.eligible, backed_up = v.backed_up, "+
		"settling_since = v.settling_since {FROM v} WHERE passkey.device_id = v.device_id AND passkey.user_id = v.user_id",
		func(w passkey.Moved) movedPasskeyRow {
			return movedPasskeyRow{DeviceID: w.DeviceID, UserID: w.UserID, Eligible: w.Eligible, BackedUp: w.BackedUp,
				SettlingSince: engine.Millis(w.Since)}
		}),
	engine.Update("UPDATE passkey SET restarted_at = v.last_used_at {FROM v} WHERE passkey.user_id = v.user_id",
		func(w passkey.Restart) usedPasskeyRow {
			return usedPasskeyRow{UserID: w.UserID, LastUsedAt: engine.Millis(w.At)}
		}),
}

var passkeys = record.Table[passkeyRow, passkey.Credential]{
	Absent: "there is no such passkey",
	Record: passkeyRow.credential,
}

func (s Passkeys) ByCredential(ctx context.Context, id []byte) (passkey.Credential, error) {
	return passkeys.Prepared(ctx, s.db, "credential_id = $1", id)
}

func (s Passkeys) List(ctx context.Context, userID string) ([]passkey.Credential, error) {
	return passkeys.PreparedList(ctx, s.db, "user_id = $1", "created_at DESC, device_id DESC", userID)
}
