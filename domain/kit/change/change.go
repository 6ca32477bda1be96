// Package change is the feed by which nodes learn of each other's writes (decision D-AUTH-01). A note names a topic and
// a key, commits with the change itself, and is read by every node shortly afterwards. A node that cannot read the feed
// knows that its caches may be stale.
package change

import (
	"context"
	"time"
)

// Topic names the kind of record that changed.
type Topic string

// The topics.
const (
	Sessions Topic = "session" // key: "sid/<session id>/<user id>" or "sv/<user id>/<sv>"
	Keys     Topic = "keys"
	MFA      Topic = "mfa"
	Users    Topic = "user" // key: user id
	// Roles: the roles of an account changed, key: "user/<user id>"; or the grants of the roles changed, key: "grants";
	// any other key means both.
	Roles Topic = "roles"
	// Geofilter: the country filter of an account changed; key: user id.
	Geofilter Topic = "geofilter"
	// AllowedIPs: the addresses from which an account may be used changed; key: user id.
	AllowedIPs Topic = "allowed_ip"
	// Currencies: reference data of currencies, networks and pairs changed; no key.
	Currencies Topic = "currency"
	// Parameters: a system parameter changed; key: its code.
	Parameters Topic = "parameter"
	CronKeys   Topic = "cron" // keys of scheduled clients; no key
	// ServiceKeys: the key of a service client changed; key: its name.
	ServiceKeys Topic = "service_key"
	// Gateways: a route of the guard for gateways changed; no key.
	Gateways Topic = "gateway"
	// Hashes: the recipes of imported password hashes changed; no key.
	Hashes   Topic = "hash"
	Firewall Topic = "firewall" // rules of the firewall; key: label
	Policy   Topic = "policy"   // rules of the money policy; key: label
	// Cluster: nodes that cannot reach each other look for members; key: "who/<question>/<node>" or
	// "here/<question>/<members>/<least id>".
	Cluster Topic = "cluster"
)

// Note notifies the other nodes of a change.
type Note struct {
	Topic Topic
	Key   string
}

func (Note) Table() string { return "change" }

// Entry is a note as read from the feed.
type Entry struct {
	ID int64
	Note
	At time.Time
}

// Store reads the feed.
type Store interface {
	// Since lists the notes written at or after from, oldest first. Notes may become visible out of the order of their
	// ids, so a reader queries the recent past again and ignores the notes it has seen.
	Since(ctx context.Context, from time.Time) ([]Entry, error)
	// Purge deletes notes older than before.
	Purge(ctx context.Context, before time.Time) error
}
