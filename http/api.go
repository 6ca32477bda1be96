// Package httpapi assembles the front end out of its sections. The folder is
// called http; the package is not, so that net/http keeps its name.
//
// Start reading at API: one field per section of the interface. Its zero
// value serves nothing but already knows the whole table, which is what the
// contract tests and the OpenAPI document are made of.
package httpapi

import (
	"reflect"

	registry "castellan/domain/resource"
	"castellan/http/addressbook"
	"castellan/http/audit"
	"castellan/http/challenge"
	"castellan/http/cluster"
	"castellan/http/device"
	"castellan/http/firewall"
	"castellan/http/geofilter"
	"castellan/http/mfa"
	"castellan/http/password"
	"castellan/http/resource"
	"castellan/http/rest"
	"castellan/http/role"
	"castellan/http/session"
	"castellan/http/socket"
	"castellan/http/system"
	"castellan/http/totp"
	"castellan/http/user"
	"castellan/http/wire"
)

// API is every section of endpoints, in the order of the interface.
type API struct {
	Challenge   challenge.Group   // 4.1
	TOTP        totp.Group        // 4.2
	Password    password.Group    // 4.3
	MFA         mfa.Group         // 4.4
	Firewall    firewall.Group    // 4.5
	Resource    resource.Group    // 4.6
	User        user.Group        // 4.12, in part
	AddressBook addressbook.Group // 4.18
	Geofilter   geofilter.Group   // 4.21
	// Extensions.
	Session session.Group
	Device  device.Group
	Role    role.Group
	Explain mfa.Explain
	Rules   firewall.Explain
	Audit   audit.Group
	Cluster cluster.Group
	Keys    system.Keys
}

// Endpoints returns every endpoint of the service.
func (a API) Endpoints() []rest.Endpoint {
	var all []rest.Endpoint
	for _, g := range []rest.Group{a.Challenge, a.TOTP, a.Password, a.MFA, a.Firewall, a.Resource, a.User, a.AddressBook, a.Geofilter, a.Session, a.Device, a.Role, a.Explain, a.Rules, a.Audit, a.Cluster, a.Keys} {
		all = append(all, g.Endpoints()...)
	}
	return all
}

// Table is what the resource registry holds of this program: every endpoint,
// and the socket, which is a resource of the firewall like any other.
func Table() registry.Table {
	endpoints := API{}.Endpoints()
	t := make(registry.Table, 0, len(endpoints)+1)
	for _, e := range endpoints {
		t = append(t, registry.Endpoint{Method: e.Method, Path: e.Path, Name: e.Summary, Reserved: e.Reserved})
	}
	return append(t, registry.Endpoint{Method: "GET", Path: socket.Path, Name: "Socket of a challenge"})
}

// Title names the service in its documents.
const Title = "Castellan"

// description introduces the document.
const description = `Second-factor challenges in front of operations, sessions, and the administration of both.

An endpoint that starts a challenge answers {"challenge": …} with its token in the response header p-auth. The client answers the listed methods at
POST /auth/2fa/challenge/complete until execResult appears; the same outcome comes on the socket /2fa (see /asyncapi.json) and from
GET /auth/2fa/challenge/result, where Prefer: wait=N holds the request until it is there. Errors are problem details (RFC 9457) with a stable code.`

// OpenAPI renders the table as a document. The server is what stands before its
// paths, a URL or a path; empty where they lie at the root.
func OpenAPI(version, server string) ([]byte, error) {
	return rest.OpenAPI(Title, version, API{}.Endpoints(), rest.Extra{Description: description, ServerURL: server, Challenge: reflect.TypeFor[wire.ChallengeAnswer]()})
}
