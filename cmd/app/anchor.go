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
	"castellan/domain/kit/audit"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/job"
	"castellan/outbound/courier"
	"castellan/persistence"
	"castellan/persistence/kit"
)

// anchors creates the checkpoints of the audit trail and publishes each outside the database. So a party with write
// access to the database cannot truncate the trail undetected (D-EXT-03).
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

// next creates a checkpoint if one is due, and at the end of the process.
func (a *anchors) next(ctx context.Context, end bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	made, err := kit.NewAudit(a.db).Checkpoint(ctx, now, a.key(), a.last, end)
	a.broken.Store(errors.Is(err, kit.ErrTampered))
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

const (
	// archiveEvery is how often old audit rows are archived, if audit.keep is set.
	archiveEvery = 24 * time.Hour
	// AuditArea is the area of the archive files.
	AuditArea = "audit-archive"
)

// ArchiveAudit moves the next audit rows that are older than before into files. A zero Counter: no row is that old.
func (d *Deployment) ArchiveAudit(ctx context.Context, files blob.Store, before time.Time) (audit.Archive, error) {
	var there []string
	for f, err := range files.List(ctx, AuditArea) {
		if err != nil {
			return audit.Archive{}, err
		}
		there = append(there, f.Key)
	}
	return kit.NewAudit(d.DB).Archive(ctx, d.Ring.Audit(), time.Now(), before, files, there)
}

// archives is the job that archives old audit rows, one file at a time.
func (s *service) archives() {
	keep := s.cfg.Audit.Keep
	kind := job.Kind{Name: "archive-audit", Step: func(ctx context.Context, j job.Job) (job.Job, []commit.Write, error) {
		may, err := kit.NewAudit(s.DB).MayRemove(ctx)
		if err != nil || !may {
			if !may && err == nil {
				s.log.Warn("old audit rows are kept: the role of the service cannot remove them; " +
					"run castellan audit archive --write as the owner of the tables")
			}
			return j.Finish(""), nil, err
		}
		made, err := s.ArchiveAudit(ctx, s.files, time.Now().Add(-keep))
		if err != nil || made.Counter == 0 {
			return j.Finish(""), nil, err
		}
		s.log.Info("audit archive", "counter", made.Counter, "rows", made.Rows, "name", made.Name,
			"sha256", fmt.Sprintf("%x", made.Digest))
		j.Done += made.Rows
		return j, nil, nil
	}}
	p := part{kinds: []job.Kind{kind}}
	if keep > 0 {
		p.schedules = []job.Schedule{{Kind: kind.Name, Every: archiveEvery}}
	}
	s.join(p)
}
