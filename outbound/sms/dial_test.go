package sms

import (
	"net/http"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
)

// A name that looks like this machine may resolve to another one: the address decides.
func TestUnencryptedStaysOnThisMachine(t *testing.T) {
	s, err := New(Config{URL: "http://localhost/", Fields: map[string]string{"to": "{{to}}", "text": "{{text}}"}})
	storetest.Must(t, err)
	dial := s.client.Transport.(*http.Transport).DialContext
	for _, address := range []string{"192.0.2.1:80", "[2001:db8::1]:80"} {
		if _, err := dial(t.Context(), "tcp", address); err == nil ||
			!strings.Contains(err.Error(), "not on a loopback address") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if err := onlyLoopback("tcp", "127.0.0.1:80", nil); err != nil {
		t.Error(err)
	}
}
