// Package httpapi assembles the HTTP interface out of its sections. The folder is
// called http; the package is not, so that net/http keeps its name.
//
// Start reading at sections, the one list of all groups of endpoints. The table
// of the contract tests, the OpenAPI document and the resource registry all come
// from it.
package httpapi

import (
	"fmt"
	"reflect"

	registry "castellan/domain/permit/resource"
	"castellan/http/account/password"
	"castellan/http/account/user"
	"castellan/http/cluster"
	"castellan/http/delivery/notification"
	"castellan/http/factor/challenge"
	"castellan/http/factor/mfa"
	"castellan/http/factor/remembered"
	"castellan/http/gate/errand"
	"castellan/http/gate/gateway"
	"castellan/http/guard/firewall"
	"castellan/http/kit/audit"
	"castellan/http/kit/cdn"
	"castellan/http/kit/country"
	"castellan/http/kit/job"
	"castellan/http/kit/parameter"
	"castellan/http/kit/setup"
	"castellan/http/money/accounting"
	"castellan/http/money/addressbook"
	"castellan/http/money/balance"
	"castellan/http/money/blockage"
	"castellan/http/money/currency"
	"castellan/http/money/level"
	"castellan/http/money/limit"
	"castellan/http/money/policy"
	"castellan/http/money/provider"
	"castellan/http/money/transaction"
	"castellan/http/office/announcement"
	"castellan/http/office/broadcast"
	"castellan/http/office/contract"
	"castellan/http/office/foureyes"
	"castellan/http/office/staffrequest"
	"castellan/http/people/agreement"
	"castellan/http/people/bootstrap"
	"castellan/http/people/corporate"
	"castellan/http/people/document"
	"castellan/http/people/dropdown"
	"castellan/http/people/identity"
	"castellan/http/people/inbox"
	"castellan/http/people/integration"
	"castellan/http/people/kyc"
	"castellan/http/people/presence"
	"castellan/http/people/registration"
	"castellan/http/people/standing"
	"castellan/http/permit/resource"
	"castellan/http/permit/servicekey"
	"castellan/http/proof/device"
	"castellan/http/proof/evidence"
	"castellan/http/proof/issuer"
	"castellan/http/proof/totp"
	"castellan/http/rest"
	"castellan/http/session/geofilter"
	"castellan/http/session/session"
	"castellan/http/socket"
	"castellan/http/system"
)

// sections lists every group of endpoints once, in the order of the interface. A zero value
// serves nothing but has its lines of the table.
var sections = []rest.Group{
	challenge.Group{},    // 4.1
	totp.Group{},         // 4.2
	password.Group{},     // 4.3
	mfa.Group{},          // 4.4
	firewall.Group{},     // 4.5
	resource.Group{},     // 4.6
	currency.Group{},     // 4.7
	contract.Group{},     // 4.8
	provider.Group{},     // 4.9, in part
	balance.Group{},      // 4.9, in part
	parameter.Group{},    // 4.10
	agreement.Group{},    // 4.10
	broadcast.Group{},    // 4.10
	accounting.Group{},   // 4.10
	cdn.Group{},          // 4.10, the upload
	document.Group{},     // 4.11
	user.Group{},         // 4.12, in part
	limit.Group{},        // 4.12, the limits
	country.Group{},      // 4.12, in part
	staffrequest.Group{}, // 4.13
	transaction.Group{},  // 4.14, in part
	dropdown.Group{},     // 4.15, in part
	level.Group{},        // 4.16, in part
	identity.Group{},     // 4.15, in part
	kyc.Group{},          // 4.16, in part
	standing.Group{},     // 4.16, in part
	blockage.Group{},     // 4.17
	addressbook.Group{},  // 4.18
	announcement.Group{}, // 4.19
	corporate.Group{},    // 4.20
	geofilter.Group{},    // 4.21
	// Extensions.
	session.Group{},
	remembered.Group{},
	device.Group{},
	notification.Group{},
	resource.Roles{},
	resource.Own{},
	servicekey.Group{},
	issuer.Group{},
	gateway.Group{},
	integration.Events{},
	integration.Users{},
	registration.Group{Enabled: true},
	bootstrap.Group{},
	integration.Deposits{},
	integration.Findings{},
	integration.Applications{},
	integration.Accounting{},
	integration.Withdrawals{},
	mfa.Explain{},
	evidence.Group{},
	errand.Group{},
	firewall.Explain{},
	policy.Group{},
	firewall.Counters{},
	firewall.Limits{},
	foureyes.Group{},
	audit.Group{},
	cluster.Group{},
	setup.Group{},
	job.Group{},
	presence.Group{},
	inbox.Group{},
	system.Keys{},
}

// Endpoints returns every endpoint of the service, in the order of the interface. A given
// group replaces its zero value; without any group, the result is only the table.
func Endpoints(serving ...rest.Group) []rest.Endpoint {
	var all []rest.Endpoint
	for _, g := range sections {
		for _, s := range serving {
			if reflect.TypeOf(s) == reflect.TypeOf(g) {
				g = s
			}
		}
		all = append(all, g.Endpoints()...)
	}
	return all
}

// Complete requires every group of the interface exactly once: a missing group would be served by its zero value.
func Complete(serving []rest.Group) error {
	given := map[reflect.Type]int{}
	for _, g := range serving {
		given[reflect.TypeOf(g)]++
	}
	for _, g := range sections {
		t := reflect.TypeOf(g)
		if n := given[t]; n != 1 {
			return fmt.Errorf("the section %v is joined %d times instead of once", t, n)
		}
		delete(given, t)
	}
	for t := range given {
		return fmt.Errorf("the section %v is not listed in http/api.go", t)
	}
	return nil
}

// Table is the content of the resource registry for this program: every endpoint, and the
// socket, which is a firewall resource too.
func Table() registry.Table {
	endpoints := Endpoints()
	t := make(registry.Table, 0, len(endpoints)+1)
	for _, e := range endpoints {
		t = append(t, registry.Endpoint{Method: e.Method, Path: e.Path, Name: e.Summary, Reserved: e.Reserved,
			Open: e.Audience == rest.SelfUser || e.Audience == rest.SelfOrAdmin, ForOthers: e.Audience == rest.SelfOrAdmin})
	}
	return append(t, registry.Endpoint{Method: "GET", Path: socket.Path, Name: "Socket of a challenge"})
}
