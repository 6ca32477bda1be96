package office

import (
	"net/url"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// The documents below a base path lead to every endpoint and to the socket (D-GEN-15).
func TestDocumentsLinkEndpointsBelowBasePath(t *testing.T) {
	const base = "/auth-service/v1"
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		s.Set("HTTP_BASE_PATH=" + base)
		n := s.Start()
		from := storetest.Value(url.Parse(n.URL + base + "/openapi.json"))(t)
		healthy := func(settings ...string) blackbox.Output {
			return s.CommandWith(append(settings, "HTTP_ADDR="+from.Host), "", "health")
		}
		if got := healthy(); got.Code != 0 || got.Out != `{"status":"ok"}`+"\n" {
			t.Errorf("health: exit %d, %s%s", got.Code, got.Out, got.ErrOut)
		}
		if got := healthy("HTTP_BASE_PATH=/else"); got.Code != 1 || !strings.Contains(got.ErrOut, "404") {
			t.Errorf("health at another path: exit %d, %s%s", got.Code, got.Out, got.ErrOut)
		}
		var api struct{ Servers []struct{ URL string } }
		n.Ok(t, "GET", from.Path, nil, nil).Read(t, &api)
		if len(api.Servers) != 1 {
			t.Fatalf("servers: %v", api.Servers)
		}
		server := storetest.Value(from.Parse(api.Servers[0].URL))(t)
		f := blackbox.NewClient(server.String()).Login(t, s.Seeded("user"))

		var events struct {
			Channels map[string]struct{ Address string }
		}
		n.Ok(t, "GET", base+"/asyncapi.json", nil, nil).Read(t, &events)
		socket, err := from.Parse(events.Channels["twoFactor"].Address)
		if err != nil || socket.Path != base+"/2fa" {
			t.Fatalf("the socket is at %v, %v", socket, err)
		}
		blackbox.NewClient(server.String()).Socket(t, f)
	})
}
