package kit

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"

	"github.com/uptrace/bun"

	"castellan/domain/kit/audit"
	"castellan/persistence/engine"
)

// chain is the run of audit rows of one transaction slot. Each hash covers the one before, so a row cannot be
// changed, moved or removed from the middle without detection.
// It is kept in memory because one transaction at a time runs in a slot; a
// transaction that is rolled back restores the chain.
type chain struct {
	name string
	mac  hash.Hash // HMAC-SHA256 with the audit key
	seq  int64
	head []byte
	lost bool // the fate of a commit is unknown: go on under a new name
	runs int
}

// NewChain returns an empty chain, whose hashes are made with the audit key.
func NewChain(name string, key []byte) engine.State { return &chain{name: name, mac: macOf(key)} }

func (c *chain) next(r audit.Record) auditRow {
	if c.lost {
		c.runs++
		c.name, c.seq, c.head, c.lost = fmt.Sprintf("%s.%d", c.name, c.runs), 0, nil, false
	}
	c.seq++
	row := auditRow{Chain: c.name, Seq: c.seq, At: engine.Millis(r.At), ActorID: r.ActorID, UserID: r.UserID,
		Action: r.Action,
		Target: r.Target, Outcome: string(r.Outcome), IP: r.IP, RequestID: r.RequestID, Detail: r.Detail}
	row.Hash = row.sum(c.mac, c.head)
	c.head = row.Hash
	return row
}

func (c *chain) Remember() (undo func()) {
	was := *c
	return func() { *c = was }
}

// Forget implements engine.State: rows whose fate is unknown may be there.
func (c *chain) Forget() { c.lost = true }

// auditRow in an archive names its fields as the list of the audit does.
type auditRow struct {
	bun.BaseModel `bun:"table:audit,alias:a" json:"-"`

	Chain     string `bun:",pk" json:"chain"`
	Seq       int64  `bun:",pk" json:"seq"`
	At        int64  `json:"at"`
	ActorID   string `json:"actorId,omitempty"`
	UserID    string `json:"userId,omitempty"`
	Action    string `json:"action"`
	Target    string `json:"target,omitempty"`
	Outcome   string `json:"outcome"`
	IP        string `json:"ip,omitempty"`
	RequestID string `json:"requestId,omitempty"`
	Detail    string `json:"detail,omitempty"`
	Hash      []byte `json:"hash"`
}

func macOf(key []byte) hash.Hash { return hmac.New(sha256.New, key) }

// sum is the MAC of the previous hash and the row, every part with its length.
func (r auditRow) sum(mac hash.Hash, previous []byte) []byte {
	b := withLength(withLength(make([]byte, 0, 512), previous), r.Chain)
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, 16), uint64(r.Seq))
	b = binary.BigEndian.AppendUint64(b, uint64(r.At))
	for _, s := range [...]string{r.ActorID, r.UserID, r.Action, r.Target, r.Outcome, r.IP, r.RequestID, r.Detail} {
		b = withLength(b, s)
	}
	return sumOf(mac, b)
}

func sumOf(mac hash.Hash, b []byte) []byte {
	mac.Reset()
	mac.Write(b)
	return mac.Sum(nil)
}

func withLength[S ~string | ~[]byte](b []byte, p S) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(p))), p...)
}

var AuditWrites = []engine.Kind{
	engine.InsertInOrder(func(s engine.State, w audit.Record) auditRow { return s.(*chain).next(w) }),
}

// eachHead finds the end of every chain by steps in the primary key, for the
// rows are many and the chains few.
const eachHead = `WITH RECURSIVE c (chain) AS (
	SELECT MIN(chain) FROM audit
	UNION ALL
	SELECT (SELECT MIN(chain) FROM audit WHERE chain > c.chain) FROM c WHERE c.chain IS NOT NULL
)
SELECT chain, (SELECT MAX(seq) FROM audit WHERE audit.chain = c.chain) AS seq FROM c WHERE chain IS NOT NULL`

func (s Audit) heads(ctx context.Context) (map[string]int64, error) {
	var rows []struct {
		Chain string
		Seq   int64
	}
	err := s.db.Conn(ctx).NewRaw(eachHead).Scan(ctx, &rows)
	heads := map[string]int64{}
	for _, r := range rows {
		heads[r.Chain] = r.Seq
	}
	return heads, engine.Translate(err)
}

// ErrTampered is what Verify finds.
var ErrTampered = errors.New("audit: the chain is broken")
