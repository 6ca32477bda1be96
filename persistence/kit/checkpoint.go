package kit

import (
	"bytes"
	"context"
	"crypto/hmac"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/persistence/engine"
)

// checkpointRow says how long every chain was. The rows are a chain themselves.
type checkpointRow struct {
	bun.BaseModel `bun:"table:audit_checkpoint,alias:p" json:"-"`

	ID      string `bun:",pk"`
	At      int64
	Heads   string // JSON: chain → sequence number
	Hash    []byte
	Counter int64 // 0 for a row of an older version, which is not chained
}

// sum is the MAC of the checkpoint before and this one.
func (c checkpointRow) sum(mac hash.Hash, previous []byte) []byte {
	if c.Counter == 0 {
		return sumOf(mac, withLength(withLength(withLength([]byte(nil), "checkpoint"), c.ID), c.Heads))
	}
	b := withLength(withLength([]byte(nil), "chained checkpoint"), previous)
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, uint64(c.Counter)), uint64(c.At))
	return sumOf(mac, withLength(withLength(b, c.ID), c.Heads))
}

func (c checkpointRow) anchor() audit.Anchor { return audit.Anchor{Counter: c.Counter, MAC: c.Hash} }

// heads reads how long every chain was.
func (c checkpointRow) heads() (heads map[string]int64, err error) {
	return heads, json.Unmarshal([]byte(c.Heads), &heads)
}

// checkpointPause is how old the last checkpoint is at least before the next one:
// every node makes them, and one a minute suffices.
const checkpointPause = 30 * time.Second

// Checkpoint records the length of every chain, so that the loss of rows at its end is detected (D-EXT-03). It makes
// none if another node has just made one, except the last one of a process. since is the previous checkpoint of this
// process. If it is gone, or a chain is shorter than the last checkpoint says, the error is ErrTampered and nothing is
// certified.
func (s Audit) Checkpoint(
	ctx context.Context, now time.Time, key []byte, since audit.Anchor, last bool,
) (made audit.Anchor, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context) error {
		gone, err := s.left(ctx, key)
		if err != nil {
			return err
		}
		mine, err := s.checkpoint(ctx, "counter = ?", since.Counter)
		if err == nil && since.Counter > gone.last.Mark && !bytes.Equal(mine.Hash, since.MAC) {
			err = fmt.Errorf("%w: checkpoint %d is missing or was replaced", ErrTampered, since.Counter)
		}
		if err != nil {
			return err
		}
		before, err := s.checkpoint(ctx, "counter > 0")
		if err != nil {
			return err
		}
		if !last && before.Counter > 0 && now.UnixMilli()-before.At < checkpointPause.Milliseconds() {
			return nil
		}
		heads, err := s.heads(ctx)
		if err != nil || len(heads) == 0 {
			return err
		}
		if err := before.precedes(gone.with(heads)); err != nil {
			return err
		}
		text, err := json.Marshal(heads)
		if err != nil {
			return err
		}
		row := checkpointRow{ID: id.New(now), At: engine.Millis(now), Heads: string(text), Counter: before.Counter + 1}
		row.Hash = row.sum(macOf(key), before.Hash)
		if _, err := s.db.Conn(ctx).NewInsert().Model(&row).Exec(ctx); err != nil {
			return engine.Translate(err)
		}
		made = row.anchor()
		return nil
	})
	if fault.CodeOf(err) == fault.RecordAlreadyExist { // another node was faster
		return audit.Anchor{}, nil
	}
	if err != nil {
		return audit.Anchor{}, err
	}
	return made, nil
}

// precedes tells that no chain became shorter since.
func (c checkpointRow) precedes(heads map[string]int64) error {
	if c.Heads == "" {
		return nil
	}
	then, err := c.heads()
	if err != nil {
		return fmt.Errorf("%w: checkpoint %s", ErrTampered, c.ID)
	}
	for name, seq := range then {
		if heads[name] < seq {
			return fmt.Errorf("%w: chain %s ends at %d, a checkpoint says %d", ErrTampered, name, heads[name], seq)
		}
	}
	return nil
}

// checkpoint is the newest of the chain that is selected; zero where there is none.
func (s Audit) checkpoint(ctx context.Context, where string, args ...any) (row checkpointRow, err error) {
	err = s.db.Conn(ctx).NewSelect().Model(&row).Where(where, args...).Order("counter DESC").Limit(1).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return row, engine.Translate(err)
}

// Verify is VerifySince without an anchor; it reports how many rows it read.
func (s Audit) Verify(ctx context.Context, key []byte) (rows int64, err error) {
	v, err := s.VerifySince(ctx, key, audit.Anchor{})
	return v.Rows, err
}

// Verified is what VerifySince read.
type Verified struct {
	Rows     int64
	Newest   audit.Anchor  // the last checkpoint
	Anchored int64         // up to which one atLeast vouches
	Archive  audit.Archive // the last one; the database's history follows it
}

// VerifySince walks every chain and names the first broken row, any chain that is
// shorter than a checkpoint says, and a gap in the checkpoints. The loss of the end of all chains is detected only by
// atLeast, a checkpoint that was kept elsewhere; the zero Anchor requires none. files prove archived rows.
// Without files, a history is verified from the point where the archives end.
func (s Audit) VerifySince(ctx context.Context, key []byte, atLeast audit.Anchor, files ...*Archives) (v Verified,
	err error) {
	for {
		gone, err := s.left(ctx, key)
		if err != nil {
			return v, err
		}
		v, err = s.verifySince(ctx, key, atLeast, gone, files)
		if !errors.Is(err, ErrTampered) {
			return v, err
		}
		// Rows may have left meanwhile.
		if now, again := s.left(ctx, key); again != nil || now.last.Counter == gone.last.Counter {
			return v, err
		}
	}
}

func (s Audit) verifySince(ctx context.Context, key []byte, atLeast audit.Anchor, gone left,
	files []*Archives) (v Verified, err error) {
	for _, f := range files {
		if err := f.join(gone.rows); err != nil {
			return v, err
		}
		if mac, is := f.marks[atLeast.Counter]; is && !hmac.Equal(mac, atLeast.MAC) {
			return v, fmt.Errorf("%w: checkpoint %d is another one", ErrTampered, atLeast.Counter)
		} else if is {
			v.Anchored = atLeast.Counter
		}
	}
	v.Archive, v.Newest = gone.last.archive(), gone.mark()
	if atLeast.Counter > 0 && atLeast.Counter <= gone.last.Mark && v.Anchored == 0 {
		return v, fmt.Errorf("checkpoint %d is archived: pass the archive files too (--archive)", atLeast.Counter)
	}
	if err := s.verifyLeft(ctx, key, gone); err != nil {
		return v, err
	}
	newest, err := s.checkpoint(ctx, "counter > 0") // before the rows: they grow meanwhile
	if err != nil {
		return v, err
	}
	heads, err := s.heads(ctx)
	if err != nil {
		return v, err
	}
	for name, last := range heads {
		mac, previous := macOf(key), gone.heads[name].Hash
		for seq := gone.heads[name].Seq + 1; seq <= last; {
			var page []auditRow
			if err := s.db.Conn(ctx).NewSelect().Model(&page).Where("chain = ?", name).Where("seq >= ?", seq).
				Order("seq").Limit(1000).Scan(ctx); err != nil {
				return v, engine.Translate(err)
			}
			for _, r := range page {
				if r.Seq != seq || !hmac.Equal(r.Hash, r.sum(mac, previous)) {
					return v, fmt.Errorf("%w: chain %s, row %d", ErrTampered, name, seq)
				}
				previous = r.Hash
				seq++
				v.Rows++
			}
			if len(page) == 0 {
				return v, fmt.Errorf("%w: chain %s, row %d", ErrTampered, name, seq)
			}
		}
	}
	return v, s.verifyCheckpoints(ctx, key, gone.with(heads), newest.Counter, atLeast, &v)
}

// verifyCheckpoints compares every checkpoint and not the last one alone: those
// that were made after rows were cut off record only the rest.
func (s Audit) verifyCheckpoints(
	ctx context.Context, key []byte, heads map[string]int64, newest int64, atLeast audit.Anchor, v *Verified,
) error {
	mac, left := macOf(key), v.Newest.Counter
	for after := (checkpointRow{}); ; {
		var page []checkpointRow
		if err := s.db.Conn(ctx).NewSelect().Model(&page).Where("(counter, id) > (?, ?)", after.Counter, after.ID).
			Where("counter = 0 OR counter > ?", left).Where("counter <= ?", newest).Order("counter", "id").
			Limit(1000).Scan(ctx); err != nil {
			return engine.Translate(err)
		}
		for _, p := range page {
			if p.Counter > 0 && p.Counter != v.Newest.Counter+1 {
				return fmt.Errorf("%w: checkpoint %d is missing", ErrTampered, v.Newest.Counter+1)
			}
			if !hmac.Equal(p.Hash, p.sum(mac, v.Newest.MAC)) {
				return fmt.Errorf("%w: checkpoint %s", ErrTampered, p.ID)
			}
			if err := p.precedes(heads); err != nil {
				return err
			}
			if after = p; p.Counter > 0 {
				v.Newest = p.anchor()
			}
			if p.Counter == atLeast.Counter && p.Counter > 0 {
				if !hmac.Equal(p.Hash, atLeast.MAC) {
					return fmt.Errorf("%w: checkpoint %d is another one", ErrTampered, p.Counter)
				}
				v.Anchored = p.Counter
			}
		}
		if len(page) == 0 {
			break
		}
	}
	if v.Anchored < atLeast.Counter {
		return fmt.Errorf("%w: the checkpoints end at %d, before %d", ErrTampered, v.Newest.Counter, atLeast.Counter)
	}
	return nil
}
