package proof

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/proof/device"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Devices struct{ db *engine.DB }

func NewDevices(db *engine.DB) device.Store { return Devices{db} }

type deviceRow struct {
	bun.BaseModel `bun:"table:device,alias:t"`

	ID          string `bun:",pk"`
	UserID      string
	PublicKey   string
	Brand       string
	Model       string
	Description string
	Platform    string
	Target      []byte
	Status      string
	CreatedAt   int64
	LastUsedAt  int64
}

func (r deviceRow) device() (device.Device, error) {
	k, err := device.ParseKey([]byte(r.PublicKey))
	if err != nil {
		// Not wrapped: the refusal of a sent key is not the answer to a damaged row.
		return device.Device{}, fmt.Errorf("device %s: stored key: %v", r.ID, err)
	}
	return device.Device{ID: r.ID, UserID: r.UserID, Key: k, Brand: r.Brand, Model: r.Model,
		Description: r.Description, Platform: r.Platform, Target: r.Target, Status: device.Status(r.Status),
		CreatedAt: engine.Time(r.CreatedAt), LastUsedAt: engine.Time(r.LastUsedAt)}, nil
}

// useRow is the row of device.Use and device.Remove.
type useRow struct {
	bun.BaseModel `bun:"table:device"`

	ID         string
	UserID     string
	LastUsedAt int64
}

type proofRow struct {
	bun.BaseModel `bun:"table:device_proof"`

	ID        string
	SeenAt    int64
	ExpiresAt int64
}

var DeviceFences = []engine.Kind{
	engine.Fenced("UPDATE device SET last_used_at = v.last_used_at {FROM v} "+
		"WHERE device.id = v.id AND device.user_id = v.user_id AND device.status = 'ACTIVE' {RETURNING device.id}",
		func(w device.Use) useRow { return useRow{ID: w.ID, UserID: w.UserID, LastUsedAt: engine.Millis(w.At)} }),
	engine.FencedInsert("ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, expires_at = excluded.expires_at "+
		"WHERE device_proof.expires_at <= excluded.seen_at {RETURNING device_proof.id}",
		func(w device.See) proofRow {
			return proofRow{ID: w.ID, SeenAt: engine.Millis(w.At), ExpiresAt: engine.Millis(w.Until)}
		}),
}

var DeviceWrites = []engine.Kind{
	engine.Insert(func(w device.Add) deviceRow {
		return deviceRow{ID: w.ID, UserID: w.UserID, PublicKey: w.Key.JWK(), Brand: w.Brand, Model: w.Model,
			Description: w.Description, Platform: w.Platform, Target: w.Target, Status: string(w.Status),
			CreatedAt: engine.Millis(w.CreatedAt), LastUsedAt: engine.Millis(w.LastUsedAt)}
	}),
	engine.Update("DELETE FROM device {USING v} WHERE device.id = v.id AND device.user_id = v.user_id",
		func(w device.Remove) useRow { return useRow{ID: w.ID, UserID: w.UserID} }),
	engine.Update("UPDATE device SET target = NULL {FROM v} WHERE device.id = v.id AND device.target = v.target",
		func(w device.Mute) muteRow { return muteRow{w.ID, w.Target} }),
}

type muteRow struct {
	ID     string
	Target []byte
}

var devices = record.Table[deviceRow, device.Device]{
	Absent: "there is no such device",
	Record: deviceRow.device,
}

func (s Devices) Get(ctx context.Context, id string) (device.Device, error) {
	return devices.Prepared(ctx, s.db, "id = $1", id)
}

func (s Devices) List(ctx context.Context, userID string) ([]device.Device, error) {
	return devices.PreparedList(ctx, s.db, "user_id = $1", "created_at DESC, id DESC", userID)
}

func (s Devices) Shared(ctx context.Context, userID, other string) (bool, error) {
	return engine.Read(ctx, s.db, s.db.Conn(ctx).NewSelect().TableExpr("device AS a").
		Join("JOIN device AS b ON b.public_key = a.public_key").
		Where("a.user_id = ?", userID).Where("b.user_id = ?", other).Exists)
}

func (s Devices) Purge(ctx context.Context, now time.Time) error {
	return s.db.Purge(ctx, "device_proof", "id", "expires_at <= ?", engine.Millis(now))
}
