package money_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
)

// On a network with tags the tag is a part of the destination: it is unique with its address, and another one waits
// again.
func TestAddressTags(t *testing.T) {
	addressbookBoth(t, func(t *testing.T, s *addressbookService) {
		s.books.Waiting = 24 * time.Hour
		tagged := func(network, address, tag, name string) string {
			return strings.Replace(post(network, network, address, name), "{", `{"addressTag":"`+tag+`",`, 1)
		}
		_, answer := s.as("user1", "POST", tagged("XRP", xrp, "104723", "one"))
		var made struct {
			Data struct{ ID, AddressTag, UsableFrom string }
		}
		storetest.Must(t, json.Unmarshal([]byte(answer), &made))
		if made.Data.AddressTag != "104723" {
			t.Errorf("added %s", answer)
		}
		s.wants("user1", "POST", tagged("XRP", xrp, "104723", "two"), 409, "RECORD_ALREADY_EXIST address")
		s.add("user1", "XRP", "XRP", xrp, "without a tag")
		for network, tag := range map[string]string{"XRP": "abc", "ETH": "1"} {
			s.wants("user1", "POST", tagged(network, map[string]string{"XRP": xrp, "ETH": eth}[network], tag, "three"), 400,
				"INVALID_FIELD addressTag")
		}
		change := func(tag string, want string) {
			t.Helper()
			first := made.Data.UsableFrom
			_, answer := s.as("user1", "PATCH", `{"id":`+made.Data.ID+`,"addressTag":"`+tag+`"}`)
			if json.Unmarshal([]byte(answer), &made) != nil {
				made.Data.UsableFrom = answer
			}
			if now := made.Data.UsableFrom; now == first && want == "" || now == want {
				return
			}
			t.Errorf("tag %q: %s", tag, answer)
		}
		s.now = s.now.Add(time.Hour)
		change("104723", "")
		change("5", s.now.Add(24*time.Hour).UTC().Format("2006-01-02T15:04:05.000Z"))
		s.wants("user1", "PATCH", `{"id":`+made.Data.ID+`,"addressTag":"07"}`, 400, "INVALID_FIELD addressTag")
		s.wants("user1", "PATCH", `{"id":`+made.Data.ID+`,"addressTag":""}`, 409, "RECORD_ALREADY_EXIST address")
	})
}
