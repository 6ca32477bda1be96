package replace

import (
	"testing"

	"castellan/domain/account/password"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/client"
	"castellan/domain/kit/storetest"
)

// A user with a session or a token waits in the queue of hashes as a known caller of its network.
func TestCallerInQueueOfHashes(t *testing.T) {
	s := &Service{Place: func(from client.Origin) string { return "place of " + from.Addr.String() }}
	want := password.Caller{Site: "place of 203.0.113.9", Known: true}
	storetest.Equal(t, s.caller(challenge.Starter{IP: "203.0.113.9"}), want)
}
