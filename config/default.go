package config

import (
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Default returns the configuration of an empty file and an empty environment. Keys that take their value from others
// are still empty: see Resolved.
func Default() (c Config) {
	for _, e := range table {
		if e.preset == "" {
			continue
		}
		if err := assign(e.field(&c), raw{text: e.preset}); err != nil {
			panic(fmt.Sprintf("config: default of %s: %v", e.key, err))
		}
	}
	return c
}

// Resolved returns the configuration with the defaults that depend on other keys or on the machine, and with URLs and
// origins in a normal form. Resolved values do not change.
func (c Config) Resolved() Config {
	h := &c.HTTP
	h.BasePath = strings.TrimRight(h.BasePath, "/")
	h.PublicURL = strings.TrimRight(h.PublicURL, "/")
	if h.PublicURL == "" {
		h.PublicURL = "http://" + reachable(h.Addr) + h.BasePath
	}
	h.CORSOrigins, c.WebAuthn.Origins = normalOrigins(h.CORSOrigins), normalOrigins(c.WebAuthn.Origins)
	if c.Database.URL == "" {
		c.Database.URL = Secret("sqlite:" + filepath.Join(c.DataDir, "castellan.db"))
	}
	if c.Keys.MasterFile == "" {
		c.Keys.MasterFile = filepath.Join(c.DataDir, "master.key")
	}
	if c.Sessions.TTL == 0 {
		c.Sessions.TTL = c.Tokens.SessionTTL
	}
	if c.Password.HashSlots == 0 {
		// GOMAXPROCS, not NumCPU: it respects the quota of a container.
		c.Password.HashSlots = max(1, runtime.GOMAXPROCS(0)-1)
	}
	if c.Mail.Port == 0 {
		c.Mail.Port = map[string]int{"starttls": 587, "tls": 465, "none": 25}[c.Mail.TLS]
	}
	c.Geo.CDNURL = strings.TrimRight(c.Geo.CDNURL, "/")
	c.Files.CDNURL = strings.TrimRight(c.Files.CDNURL, "/")
	if c.Files.Folder == "" {
		c.Files.Folder = filepath.Join(c.DataDir, "files")
	}
	if c.Push.Contact == "" && strings.HasPrefix(h.PublicURL, "https://") {
		c.Push.Contact = h.PublicURL
	}
	// A lease that was chosen before this key existed stays sufficient.
	if c.Source("push.timeout") == FromDefault && c.Push.Timeout >= c.Outbox.Lease {
		c.Push.Timeout = max(time.Second, c.Outbox.Lease/2)
	}
	if c.Source("http.max_connections_per_ip") == FromDefault && len(h.TrustedProxies) > 0 {
		h.MaxConnectionsPerIP = 0 // all connections come from a proxy's address
	}
	if c.Source("geo.allow_private") == FromDefault && c.Dev {
		c.Geo.AllowPrivate = true
	}
	if c.Source("registration.enabled") == FromDefault && c.Dev {
		c.Registration.Enabled = true
	}
	if c.Dev {
		c.raiseCaps()
	}
	return c
}

// raiseCaps makes the defaults of the caps of starts and messages a hundred times higher: a developer logs in more
// often than a user. Bounds on wrong values and on pushes stay as they are.
func (c *Config) raiseCaps() {
	l, def := &c.Limits, Default()
	for _, key := range []string{"limits.reset_per_phone", "limits.reset_per_ip", "limits.destination_per_day",
		"limits.user_per_day", "limits.ip_per_hour", "limits.destination_per_hour"} {
		limit, usual := byKey[key].field(c).(*int), byKey[key].field(&def).(*int)
		if c.Source(key) == FromDefault && *limit == *usual {
			*limit *= 100
		}
	}
	if c.Source("limits.destination_per_hour") == FromDefault { // a configured cap of the day stays sufficient
		l.DestinationPerHour = min(l.DestinationPerHour, max(def.Limits.DestinationPerHour, l.DestinationPerDay))
	}
}

// reachable converts a listening address into one that a client on this machine can call: an address of all interfaces
// is no host name.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip, ok := parseIP(host); host == "" || ok && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// normalOrigins writes origins as browsers do: lower case, without the default port. Load reports invalid ones.
func normalOrigins(all []string) (normal []string) {
	for _, o := range all {
		o = strings.ToLower(o)
		switch {
		case strings.HasPrefix(o, "https://"):
			o = strings.TrimSuffix(o, ":443")
		case strings.HasPrefix(o, "http://"):
			o = strings.TrimSuffix(o, ":80")
		}
		normal = append(normal, o)
	}
	return normal
}
