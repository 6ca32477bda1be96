package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"castellan/config"
	"castellan/domain/audit"
	"castellan/outbound/courier"
	"castellan/persistence"
)

// anchors makes the checkpoints of the audit trail and publishes each outside of the
// database, so that whoever can write there cannot shorten the trail unseen
// (D-EXT-03).
type anchors struct {
	db   *persistence.DB
	key  func() []byte
	log  *slog.Logger
	post func(ctx context.Context, id, mediaType string, body []byte) error // nil: nowhere

	mu      sync.Mutex
	last    audit.Anchor
	counter atomic.Int64
	broken  atomic.Bool
}

func newAnchors(db *persistence.DB, key func() []byte, to config.Audit, log *slog.Logger) (*anchors, error) {
	a := &anchors{db: db, key: key, log: log}
	if to.AnchorURL != "" {
		c, err := courier.New(courier.Config{URL: to.AnchorURL, Secret: to.AnchorSecret.Reveal(), CAFile: to.AnchorCAFile})
		if err != nil {
			return nil, fmt.Errorf("audit anchors: %w", err)
		}
		a.post = c.Post
	}
	return a, nil
}

// next makes a checkpoint where it is time for one, and at the end of the process.
func (a *anchors) next(ctx context.Context, end bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	made, err := a.db.Checkpoint(ctx, now, a.key(), a.last, end)
	a.broken.Store(errors.Is(err, persistence.ErrTampered))
	if err != nil || made.Counter == 0 {
		return err
	}
	a.last = made
	a.counter.Store(made.Counter)
	mac := fmt.Sprintf("%x", made.MAC)
	a.log.Info("audit checkpoint", "counter", made.Counter, "mac", mac)
	if a.post == nil {
		return nil
	}
	body, err := json.Marshal(struct {
		Counter int64  `json:"counter"`
		MAC     string `json:"mac"`
		At      int64  `json:"at"` // epoch ms
	}{made.Counter, mac, now.UnixMilli()})
	if err != nil {
		return err
	}
	return a.post(ctx, "audit-checkpoint-"+strconv.FormatInt(made.Counter, 10), "application/json", body)
}
