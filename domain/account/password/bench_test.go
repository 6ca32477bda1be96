package password

import (
	"testing"
	"time"

	"castellan/domain/kit/commit"
)

// BenchmarkTry measures a correct login without its hash and the database: the line of its account, a place, a turn
// and the two changes of its guard.
func BenchmarkTry(b *testing.B) {
	r := &rows{guards: map[string]Guard{}}
	g := NewGuards(r, r, DefaultGuardRules(), time.Now)
	h, err := NewHasher(HasherOptions{Params: cheap, Slots: 1, Queue: 128})
	if err != nil {
		b.Fatal(err)
	}
	save := func(w commit.Write) {
		if err := r.Commit(b.Context(), w); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		who := Caller{Site: "203.0.113.9/32", Since: time.Now()}
		if err := h.Full(who.Site); err != nil {
			b.Fatal(err)
		}
		seen := r.guards["u"]
		seen.Key = "u"
		var place *Place
		a, err := g.ChargeSeen(b.Context(), seen, "203.0.113.9/32", who.Since, func(known bool) (err error) {
			who.Known = known
			place, err = h.Admit(who)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		slot, err := h.acquire(b.Context(), place)
		if err != nil {
			b.Fatal(err)
		}
		h.done(slot)
		place.Leave()
		w, err := a.Refund(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		save(w)
		a.Refunded()
	}
}
