package kit

import (
	"encoding/hex"
	"testing"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/storetest"
)

// The hashes of rows that exist already do not change.
func TestAuditHashes(t *testing.T) {
	const rowHash = "286bee749eae6a926540c6a348bd5b8db57fb4cca793d58a69a13c37356909d6"
	r := auditRow{Chain: "s-0", Seq: 7, At: 1700000000123, ActorID: "a", UserID: "u", Action: "LOGIN",
		Outcome: "success", IP: "127.0.0.1", RequestID: "q", Detail: "ışık"}
	storetest.Equal(t, hex.EncodeToString(r.sum(macOf([]byte("key")), []byte{1, 2})), rowHash, "a row")
	const checkpointHash = "1909df49934f3f8b4fc92ddd273f23b00c2a93f2faf5734d19619a051c95ff0e"
	p := checkpointRow{ID: "c", Heads: `{"s-0":7}`}
	storetest.Equal(t, hex.EncodeToString(p.sum(macOf([]byte("key")), nil)), checkpointHash)
}

// After a commit whose fate is unknown the rows that were in it may be there: the
// chain goes on under another name, so that it meets none of them.
func TestChainAfterUnknownFate(t *testing.T) {
	c := &chain{name: "s", mac: macOf(nil), seq: 9, head: []byte{1}}
	undo := c.Remember()
	c.next(audit.Record{Action: "X"})
	undo()
	storetest.Equal(t, c.seq, 9)
	storetest.Same(t, c.head, []byte{1})
	c.Forget()
	if r := c.next(audit.Record{Action: "X"}); r.Chain == "s" || r.Seq != 1 {
		t.Errorf("the next row is %s/%d", r.Chain, r.Seq)
	}
}
