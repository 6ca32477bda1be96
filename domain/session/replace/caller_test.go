package replace

import (
	"net/netip"
	"testing"

	"castellan/domain/account/password"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/client"
)

// A user with a session or a token waits in the queue of hashes as a known caller of its network.
func TestCallerInQueueOfHashes(t *testing.T) {
	from := challenge.Starter{IP: "203.0.113.9"}
	s := &Service{}
	want := password.Caller{Site: client.Site(netip.MustParseAddr(from.IP)), Known: true}
	if got := s.caller(from); got != want || want.Site == "" {
		t.Errorf("%+v, want %+v", got, want)
	}
	s.Place = func(from client.Origin) string { return "place of " + from.Addr.String() }
	want.Site = "place of 203.0.113.9"
	if got := s.caller(from); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
