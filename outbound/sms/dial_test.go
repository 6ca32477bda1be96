package sms

import (
	"net/http"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/outbound/fetch"
)

// A name that looks like this machine may resolve to another one: the address decides.
func TestUnencryptedStaysOnThisMachine(t *testing.T) {
	s, err := New(Config{URL: "http://localhost/", Format: "form",
		Fields: map[string]string{"to": "{{to}}", "text": "{{text}}"}})
	storetest.Must(t, err)
	dial := s.client.Transport.(*http.Transport).DialContext
	for _, address := range []string{"192.0.2.1:80", "[2001:db8::1]:80"} {
		storetest.Is(t, storetest.Err(dial(t.Context(), "tcp", address)), fetch.ErrRefused, address)
	}
}
