package persistence

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/audit"
	"castellan/domain/id"
)

// chain is one writer's run of audit rows: each hash covers the one before,
// so that a row cannot be changed, moved or taken out of the middle unseen.
// It is kept in memory because one transaction at a time runs on a lane; a
// rolled-back transaction restores the value from before.
type chain struct {
	name string
	key  []byte
	seq  int64
	head []byte
	lost bool // the fate of a commit is unknown: go on under a new name
	runs int
}

func (c *chain) next(r audit.Record) auditRow {
	if c.lost {
		c.runs++
		c.name, c.seq, c.head, c.lost = fmt.Sprintf("%s.%d", c.name, c.runs), 0, nil, false
	}
	c.seq++
	row := auditRow{Chain: c.name, Seq: c.seq, At: ms(r.At), ActorID: r.ActorID, UserID: r.UserID, Action: r.Action, Target: r.Target,
		Outcome: string(r.Outcome), IP: r.IP, RequestID: r.RequestID, Detail: r.Detail}
	row.Hash = row.sum(c.key, c.head)
	c.head = row.Hash
	return row
}

func (c *chain) forget() { c.lost = true }

type auditRow struct {
	bun.BaseModel `bun:"table:audit,alias:a"`

	Chain     string `bun:",pk"`
	Seq       int64  `bun:",pk"`
	At        int64
	ActorID   string
	UserID    string
	Action    string
	Target    string
	Outcome   string
	IP        string
	RequestID string
	Detail    string
	Hash      []byte
}

// sum is HMAC-SHA256(key, previous hash ‖ row), every part with its length.
func (r auditRow) sum(key, previous []byte) []byte {
	h := hmac.New(sha256.New, key)
	part(h, previous)
	part(h, []byte(r.Chain))
	var n [16]byte
	binary.BigEndian.PutUint64(n[:8], uint64(r.Seq))
	binary.BigEndian.PutUint64(n[8:], uint64(r.At))
	part(h, n[:])
	for _, s := range []string{r.ActorID, r.UserID, r.Action, r.Target, r.Outcome, r.IP, r.RequestID, r.Detail} {
		part(h, []byte(s))
	}
	return h.Sum(nil)
}

func part(h hash.Hash, b []byte) {
	var n [4]byte
	binary.BigEndian.PutUint32(n[:], uint32(len(b)))
	h.Write(n[:])
	h.Write(b)
}

var auditWrites = []planFor{
	inserts(func(r *DBRow, w audit.Record) auditRow { return r.l.chain.next(w) }),
}

type checkpointRow struct {
	bun.BaseModel `bun:"table:audit_checkpoint,alias:p"`

	ID    string `bun:",pk"`
	At    int64
	Heads string // JSON: chain → sequence number
	Hash  []byte
}

func (c checkpointRow) sum(key []byte) []byte {
	h := hmac.New(sha256.New, key)
	part(h, []byte("checkpoint"))
	part(h, []byte(c.ID))
	part(h, []byte(c.Heads))
	return h.Sum(nil)
}

// Checkpoint writes down how long every chain is, so that rows cut off its
// end are missed (D-EXT-03).
func (db *DB) Checkpoint(ctx context.Context, now time.Time, key []byte) error {
	heads, err := db.heads(ctx)
	if err != nil || len(heads) == 0 {
		return err
	}
	text, err := json.Marshal(heads)
	if err != nil {
		return err
	}
	row := checkpointRow{ID: id.New(now), At: ms(now), Heads: string(text)}
	row.Hash = row.sum(key)
	return db.InTx(ctx, func(ctx context.Context) error {
		_, err := db.conn(ctx).NewInsert().Model(&row).Exec(ctx)
		return err
	})
}

func (db *DB) heads(ctx context.Context) (map[string]int64, error) {
	var rows []struct {
		Chain string
		Seq   int64
	}
	err := db.conn(ctx).NewSelect().Table("audit").Column("chain").ColumnExpr("MAX(seq) AS seq").Group("chain").Scan(ctx, &rows)
	heads := map[string]int64{}
	for _, r := range rows {
		heads[r.Chain] = r.Seq
	}
	return heads, translate(err)
}

// ErrTampered is what VerifyAudit finds.
var ErrTampered = errors.New("audit: the chain is broken")

// VerifyAudit walks every chain and names the first broken row, and any chain
// that is shorter than its last checkpoint says. It reports how many rows it
// read.
func (db *DB) VerifyAudit(ctx context.Context, key []byte) (rows int64, err error) {
	heads, err := db.heads(ctx)
	if err != nil {
		return 0, err
	}
	for name, last := range heads {
		var previous []byte
		for seq := int64(1); seq <= last; {
			var page []auditRow
			if err := db.read.NewSelect().Model(&page).Where("chain = ?", name).Where("seq >= ?", seq).Order("seq").Limit(1000).Scan(ctx); err != nil {
				return rows, translate(err)
			}
			for _, r := range page {
				if r.Seq != seq || !hmac.Equal(r.Hash, r.sum(key, previous)) {
					return rows, fmt.Errorf("%w: chain %s, row %d", ErrTampered, name, seq)
				}
				previous = r.Hash
				seq++
				rows++
			}
			if len(page) == 0 {
				return rows, fmt.Errorf("%w: chain %s, row %d", ErrTampered, name, seq)
			}
		}
	}
	var points []checkpointRow
	if err := db.read.NewSelect().Model(&points).Order("id DESC").Limit(1).Scan(ctx); err != nil {
		return rows, translate(err)
	}
	for _, p := range points {
		if !hmac.Equal(p.Hash, p.sum(key)) {
			return rows, fmt.Errorf("%w: checkpoint %s", ErrTampered, p.ID)
		}
		var then map[string]int64
		if err := json.Unmarshal([]byte(p.Heads), &then); err != nil {
			return rows, fmt.Errorf("%w: checkpoint %s", ErrTampered, p.ID)
		}
		for name, seq := range then {
			if heads[name] < seq {
				return rows, fmt.Errorf("%w: chain %s ends at %d, its checkpoint says %d", ErrTampered, name, heads[name], seq)
			}
		}
	}
	return rows, nil
}
