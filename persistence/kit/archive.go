package kit

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/audit"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

// Old audit rows leave in three steps, each of which may be repeated (D-EXT-03):
//
//  1. A file is written that holds the next rows of every chain and the checkpoints of
//     that time. Its name has its digest, so no file takes the place of another.
//  2. A row of audit_archive commits, which names the file and the heads that left.
//     From then on the history of the database begins behind these heads.
//  3. What is before the heads is removed, a part at a time.
//
// A process that dies after 1 leaves a file that no row names; the next one removes it.

// archiveRow says what one file holds. The rows are a chain themselves.
type archiveRow struct {
	bun.BaseModel `bun:"table:audit_archive,alias:f"`

	Counter   int64 `bun:",pk"`
	At        int64
	Name      string
	Digest    []byte
	RowCount  int64
	Transfers int64
	Heads     string
	Mark      int64
	MarkHash  []byte
	Hash      []byte
}

func (r archiveRow) sum(mac hash.Hash, previous []byte) []byte {
	b := withLength(withLength([]byte(nil), "archive"), previous)
	for _, n := range [...]int64{r.Counter, r.At, r.RowCount, r.Transfers, r.Mark} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return sumOf(mac, withLength(withLength(withLength(withLength(b, r.Name), r.Digest), r.Heads), r.MarkHash))
}

// Archive is a file as the database names it.
func (r archiveRow) archive() audit.Archive {
	return audit.Archive{Counter: r.Counter, Name: r.Name, Digest: r.Digest, Rows: r.RowCount, At: engine.Time(r.At)}
}

// head is the last row of a chain that left.
type head struct {
	Seq  int64  `json:"n"`
	Hash []byte `json:"h"`
}

// left is all that has left with the archives.
type left struct {
	rows      []archiveRow
	last      archiveRow // zero: nothing
	heads     map[string]head
	moved     map[string]head // those of the last archive: of the others nothing is here any more
	transfers int64
}

func (l left) mark() audit.Anchor { return audit.Anchor{Counter: l.last.Mark, MAC: l.last.MarkHash} }

// with are the heads of chains with those that have left.
func (l left) with(heads map[string]int64) map[string]int64 {
	for name, h := range l.heads {
		heads[name] = max(heads[name], h.Seq)
	}
	return heads
}

// left reads the rows of the archives and proves their chain; key nil proves nothing.
func (s Audit) left(ctx context.Context, key []byte) (l left, err error) {
	var rows []archiveRow
	if err := s.db.Conn(ctx).NewSelect().Model(&rows).Order("counter").Scan(ctx); err != nil {
		return l, engine.Translate(err)
	}
	l.rows, l.heads = rows, map[string]head{}
	for _, r := range rows {
		if r.Counter != l.last.Counter+1 {
			return l, fmt.Errorf("%w: archive %d is missing", ErrTampered, l.last.Counter+1)
		}
		if key != nil && !hmac.Equal(r.Hash, r.sum(macOf(key), l.last.Hash)) {
			return l, fmt.Errorf("%w: the row of archive %d", ErrTampered, r.Counter)
		}
		var heads map[string]head
		if err := json.Unmarshal([]byte(r.Heads), &heads); err != nil {
			return l, fmt.Errorf("%w: the row of archive %d", ErrTampered, r.Counter)
		}
		maps.Copy(l.heads, heads)
		l.transfers += r.Transfers
		l.last, l.moved = r, heads
	}
	return l, nil
}

// KeptAction is ledger.ActionTransfer: of rows of this action what the proof of the
// ledger needs stays when they leave.
const KeptAction = "LEDGER_TRANSFER"

const (
	// archiveRows bounds a file, and what one takes of memory.
	archiveRows = 20_000
	archiveArea = "audit-archive"
)

// Files is where archives go; blob.Store is one.
type Files interface {
	Put(ctx context.Context, key string, content []byte) error
	Delete(ctx context.Context, key string) error
}

// Archive writes the next file of rows older than before, and of the checkpoints of
// that time, and lets what it holds leave the database. There is none, and its Counter
// is 0, where nothing is old enough; files nil writes nothing and tells what the next
// file would hold. leftover are files of the area that may have been left by a process
// that died; those that no row names are removed.
//
// ErrTampered: a broken chain is not archived: the break could not be found afterwards.
func (s Audit) Archive(ctx context.Context, key []byte, now, before time.Time, files Files,
	leftover []string) (a audit.Archive, err error) {
	err = s.db.Exclusive(ctx, func(ctx context.Context) error {
		l, err := s.left(ctx, key)
		if err != nil {
			return err
		}
		if files != nil {
			if err := removeLeftover(ctx, files, l, leftover); err != nil {
				return err
			}
			if err := s.removeLeft(ctx, key, l); err != nil { // of a process that died
				return err
			}
		}
		f, err := s.gather(ctx, key, l, now, before)
		if err != nil || len(f.Rows)+len(f.Checkpoints) == 0 {
			return err
		}
		row, content, err := f.seal(key, l.last)
		if err != nil {
			return err
		}
		a = row.archive()
		if files == nil {
			return nil
		}
		if err := files.Put(ctx, archiveArea+"/"+row.Name, content); err != nil {
			return err
		}
		if err := record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
			_, err := tx.NewInsert().Model(&row).Exec(ctx)
			return err
		}); err != nil {
			return err
		}
		if l, err = s.left(ctx, key); err != nil {
			return err
		}
		return s.removeLeft(ctx, key, l)
	})
	if err != nil {
		return audit.Archive{}, err
	}
	return a, nil
}

func (s Audit) Older(ctx context.Context, before time.Time) (int64, error) {
	l, err := s.left(ctx, nil)
	if err != nil {
		return 0, err
	}
	n, err := s.db.Conn(ctx).NewSelect().Table("audit").Where("at < ?", engine.Millis(before)).Count(ctx)
	rows := int64(n)
	for name, h := range l.moved { // what a process that died has not removed has left
		waiting, err := s.db.Conn(ctx).NewSelect().Table("audit").Where("chain = ?", name).Where("seq <= ?", h.Seq).Count(ctx)
		if err != nil {
			return 0, engine.Translate(err)
		}
		rows -= int64(waiting)
	}
	return rows, engine.Translate(err)
}

// MayRemove reports whether the role of this process may remove audit rows.
func (s Audit) MayRemove(ctx context.Context) (may bool, err error) {
	if !s.db.Postgres() {
		return true, nil
	}
	err = s.db.Conn(ctx).NewRaw("SELECT has_table_privilege('audit', 'DELETE') AND "+
		"has_table_privilege('audit_checkpoint', 'DELETE')").Scan(ctx, &may)
	return may, engine.Translate(err)
}

func removeLeftover(ctx context.Context, files Files, l left, keys []string) error {
	for _, key := range keys {
		if !slices.ContainsFunc(l.rows, func(r archiveRow) bool { return key == archiveArea+"/"+r.Name }) {
			if err := files.Delete(ctx, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// gather reads and proves what is old behind the heads that have left.
func (s Audit) gather(ctx context.Context, key []byte, l left, now, before time.Time) (f archiveFile, err error) {
	f = archiveFile{Heads: map[string]head{}, archiveHead: archiveHead{Format: archiveFormat, Counter: l.last.Counter + 1,
		At: engine.Millis(now), Previous: l.last.Digest, From: map[string]head{}, Mark: l.last.Mark,
		MarkHash: l.last.MarkHash}}
	heads, err := s.heads(ctx)
	if err != nil {
		return f, err
	}
	for _, name := range slices.Sorted(maps.Keys(heads)) {
		h := l.heads[name]
		for first := true; len(f.Rows) < archiveRows; first = false {
			var page []auditRow
			if err := s.db.Conn(ctx).NewSelect().Model(&page).Where("chain = ?", name).Where("seq > ?", h.Seq).
				Order("seq").Limit(1000).Scan(ctx); err != nil {
				return f, engine.Translate(err)
			}
			old := len(page)
			if i := slices.IndexFunc(page, func(r auditRow) bool { return r.At >= engine.Millis(before) }); i >= 0 {
				old = i
			}
			if old == 0 {
				break
			}
			if first {
				f.From[name] = h
			}
			if h, err = f.add(key, h, page[:old]); err != nil {
				return f, err
			}
			if old < len(page) || len(page) < 1000 {
				break
			}
		}
	}
	newest, err := s.checkpoint(ctx, "counter > 0")
	if err != nil {
		return f, err
	}
	err = s.db.Conn(ctx).NewSelect().Model(&f.Checkpoints).Where("counter > ?", l.last.Mark).
		Where("counter < ?", newest.Counter).Where("at < ?",
		engine.Millis(before)).Order("counter").Limit(archiveRows).Scan(ctx)
	if err != nil {
		return f, engine.Translate(err)
	}
	return f, f.proveMarks(key)
}

// removeLeft removes what is before the heads that have left, and keeps of transfers
// what the proof of the ledger needs.
func (s Audit) removeLeft(ctx context.Context, key []byte, l left) error {
	mac := macOf(key)
	for name, h := range l.moved {
		for n := 1; n > 0; {
			err := s.db.InTx(ctx, func(ctx context.Context) error {
				var page []auditRow
				tx := s.db.Conn(ctx)
				if err := tx.NewSelect().Model(&page).Where("chain = ?", name).Where("seq <= ?", h.Seq).Order("seq").
					Limit(500).Scan(ctx); err != nil {
					return err
				}
				if n = len(page); n == 0 {
					return nil
				}
				var keep []transferredRow
				for _, r := range page {
					if r.Action == KeptAction {
						k := transferredRow{Chain: r.Chain, Seq: r.Seq, Target: r.Target, Detail: r.Detail}
						k.Hash = k.chainHash(mac)
						keep = append(keep, k)
					}
				}
				if len(keep) > 0 {
					if _, err := tx.NewInsert().Model(&keep).Exec(ctx); err != nil {
						return err
					}
				}
				_, err := tx.NewDelete().Table("audit").Where("chain = ?", name).Where("seq <= ?", page[n-1].Seq).Exec(ctx)
				return err
			})
			if err != nil {
				return engine.Translate(err)
			}
		}
	}
	return record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewDelete().Table("audit_checkpoint").Where("counter > 0").Where("counter <= ?", l.last.Mark).Exec(ctx)
		return err
	})
}

// transferredRow is what is kept of the audit row of a transfer that left.
type transferredRow struct {
	bun.BaseModel `bun:"table:audit_left,alias:l"`

	Chain  string `bun:",pk"`
	Seq    int64  `bun:",pk"`
	Target string
	Detail string
	Hash   []byte
}

func (r transferredRow) chainHash(mac hash.Hash) []byte {
	b := binary.BigEndian.AppendUint64(withLength(withLength([]byte(nil), "left"), r.Chain), uint64(r.Seq))
	return sumOf(mac, withLength(withLength(b, r.Target), r.Detail))
}

// verifyLeft proves what is kept of transfers whose rows left, and that none is gone.
func (s Audit) verifyLeft(ctx context.Context, key []byte, l left) error {
	mac, n := macOf(key), int64(0)
	for after := (transferredRow{}); ; {
		var page []transferredRow
		if err := s.db.Conn(ctx).NewSelect().Model(&page).Where("(chain, seq) > (?, ?)", after.Chain, after.Seq).
			Order("chain", "seq").Limit(1000).Scan(ctx); err != nil {
			return engine.Translate(err)
		}
		for _, r := range page {
			if h := l.heads[r.Chain]; r.Seq > h.Seq || !hmac.Equal(r.Hash, r.chainHash(mac)) {
				return fmt.Errorf("%w: the kept part of chain %s, row %d", ErrTampered, r.Chain, r.Seq)
			}
			after = r
		}
		n += int64(len(page))
		if len(page) == 0 {
			break
		}
	}
	waiting := 0 // not removed yet
	for name, h := range l.moved {
		c, err := s.db.Conn(ctx).NewSelect().Table("audit").Where("chain = ?", name).Where("seq <= ?", h.Seq).
			Where("action = ?", KeptAction).Count(ctx)
		if err != nil {
			return engine.Translate(err)
		}
		waiting += int(c)
	}
	if n+int64(waiting) < l.transfers {
		return fmt.Errorf("%w: %d transfers were archived, %d are kept", ErrTampered, l.transfers, n+int64(waiting))
	}
	return nil
}

func digestOf(content []byte) []byte {
	sum := sha256.Sum256(content)
	return sum[:]
}
