package httpapi

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"castellan/http/rest"
	"castellan/http/wire"
)

// Title is the name of the service in its documents.
const Title = "Castellan"

// description is the introduction of the document; each line is a paragraph.
const description = "Sessions, multi-factor challenges that guard operations, and their administration.\n\n" +
	"An operation that starts a challenge responds with {\"challenge\": …} and its token in the header p-auth. " +
	"The client completes the listed methods with completeChallenge until the response has execResult. The socket " +
	"/2fa (see /asyncapi.json) and getChallengeResult return the same outcome; with Prefer: wait=N, " +
	"getChallengeResult waits for it.\n\n" +
	"Errors are problem details (RFC 9457) with a stable code. Texts for users are in Turkish, English or Arabic, " +
	"selected by Accept-Language. The query parameters of a GET can also be sent as a JSON body; the query takes " +
	"precedence."

// tags are the groups of the document by area: the sections of the interface with their extensions.
var tags = slices.Concat(
	area("kit",
		rest.Tag{Name: "Admin operations", Sections: []string{"4.10 Admin operations"},
			Description: "Parameters, agreements, mailings and accounting, for administrators."},
		rest.Tag{Name: "Integration", Sections: []string{"Extensions: integration"},
			Description: "Records that other services of the platform create and update, and events that they read."},
		rest.Tag{Name: "Audit", Sections: []string{"Extensions: audit"},
			Description: "The audit log: actor, action, record and time of every act, for administrators."},
		rest.Tag{Name: "Jobs", Sections: []string{"Extensions: jobs"},
			Description: "Background jobs such as mailings: list, progress and cancellation, for administrators."},
		rest.Tag{Name: "Setup", Sections: []string{"Extensions: setup"},
			Description: "Disabled controls and features, and live checks of settings, for administrators."},
		rest.Tag{Name: "Cluster", Sections: []string{"Extensions: cluster"},
			Description: "The nodes of the cluster and their active actors, for administrators."},
	),
	area("delivery",
		rest.Tag{Name: "Notifications", Sections: []string{"Extensions: notifications", "Extensions: agreements"},
			Description: "The notifications of an account and their read state."},
	),
	area("guard",
		rest.Tag{Name: "Firewall", Sections: []string{"4.5 Firewall rules", "Extensions: firewall"},
			Description: "Rules that limit, allow and block requests, for administrators."},
	),
	area("access",
		rest.Tag{Name: "Login and sessions", Sections: []string{"Extensions: login and sessions"},
			Description: "Log in, log out, and list the sessions of an account."},
		rest.Tag{Name: "Challenges", Sections: []string{"4.1 2FA", "Extensions: challenges"},
			Description: "Complete the methods of a challenge, request a new code, and get the outcome."},
		rest.Tag{Name: "Evidence", Sections: []string{"Extensions: evidence"},
			Description: "The document that an approver read, and the signatures under it, for administrators."},
		rest.Tag{Name: "Authenticator", Sections: []string{"4.2 TOTP"},
			Description: "The authenticator app of an account and its recovery codes."},
		rest.Tag{Name: "Password", Sections: []string{"4.3 Password"},
			Description: "Change a password, or reset a forgotten one."},
		rest.Tag{Name: "Devices", Sections: []string{"Extensions: devices"},
			Description: "Registered devices, which approve pushes with their keys."},
		rest.Tag{Name: "Registration", Sections: []string{"Extensions: registration"},
			Description: "Sign-up of users, if it is enabled."},
		rest.Tag{Name: "First administrator", Sections: []string{"Extensions: first administrator"},
			Description: "The account that the link of castellan setup-link makes, while there is no administrator."},
		rest.Tag{Name: "Users", Sections: []string{"4.12 Users", "Extensions: users"},
			Description: "The profile of the caller, and the accounts that administrators read and update."},
		rest.Tag{Name: "Allowed countries", Sections: []string{"4.21 Geographic filter"},
			Description: "The countries from which an account may be used."},
		rest.Tag{Name: "MFA administration",
			Sections:    []string{"4.4 MFA administration", "Extensions: multi-factor administration"},
			Description: "Methods, actions and policies of multi-factor authentication, for administrators."},
		rest.Tag{Name: "Resource registry", Sections: []string{"4.6 Resource registry"},
			Description: "The resources on which permissions are granted: endpoints, pages and their parts, for " +
				"administrators."},
		rest.Tag{Name: "Roles", Sections: []string{"Extensions: roles and permissions"},
			Description: "Roles, their members and their permissions, for administrators."},
		rest.Tag{Name: "Service clients", Sections: []string{"Extensions: service clients"},
			Description: "Keys with which other services of the platform call this service, for administrators."},
		rest.Tag{Name: "Guard", Sections: []string{"Extensions: guard"},
			Description: "Challenges for the operations of other services, and their grants."},
		rest.Tag{Name: "Foreign users", Sections: []string{"Extensions: foreign users"},
			Description: "Links of users who log in at another service to accounts here, for administrators."},
		rest.Tag{Name: "Gateways", Sections: []string{"Extensions: gateways"},
			Description: "Routes of the requests for which gateways ask this service, for administrators."},
		rest.Tag{Name: "Public keys", Sections: []string{"Extensions"},
			Description: "The keys with which clients verify tokens and subscribe to pushes."},
	),
	area("money",
		rest.Tag{Name: "Currencies and rates", Sections: []string{"4.7 Currency and assets"},
			Description: "Currencies, networks, assets of an account, and exchange rates."},
		rest.Tag{Name: "Balances", Sections: []string{"4.9 Process and balance"},
			Description: "Balances of users, also by day, and balances held at providers, for administrators."},
		rest.Tag{Name: "Transactions", Sections: []string{"4.14 Transactions", "Extensions: transactions"},
			Description: "Deposits, withdrawals and adjustments of balances, for administrators."},
		rest.Tag{Name: "Money policy", Sections: []string{"Extensions: money policy"},
			Description: "Rules that deny movements of money, or let them wait for approvals, for administrators."},
		rest.Tag{Name: "Blockages", Sections: []string{"4.17 Blockage"},
			Description: "Blocked amounts of users' balances, for administrators."},
		rest.Tag{Name: "Withdrawal addresses", Sections: []string{"4.18 Withdrawal address book"},
			Description: "The address book for withdrawals of an account."},
	),
	area("office",
		rest.Tag{Name: "Contracts", Sections: []string{"4.8 Contracts", "Extensions: contracts"},
			Description: "The contracts that users accept, their versions and their details, for administrators."},
		rest.Tag{Name: "Announcements", Sections: []string{"4.19 Announcements"},
			Description: "The public announcements, and their administration."},
		rest.Tag{Name: "Deploy and VPN requests", Sections: []string{"4.13 Deploy and VPN requests"},
			Description: "Staff requests for deployments and VPN access, and their approval, for administrators."},
		rest.Tag{Name: "Approvals", Sections: []string{"Extensions: approvals"},
			Description: "Requests that need the approval of a second person, for administrators."},
	),
	area("people",
		rest.Tag{Name: "Documents", Sections: []string{"4.11 Documents"},
			Description: "Documents of users, such as a passport: encrypted at rest, readable by administrators only."},
		rest.Tag{Name: "Additional info",
			Sections:    []string{"4.15 Additional info and identity", "Extensions: dropdown options"},
			Description: "Additional information that a user provides, and the options to choose from."},
		rest.Tag{Name: "KYC and levels", Sections: []string{"4.16 KYC and levels", "Extensions: KYC", "Extensions: levels"},
			Description: "Identity checks of accounts, their decisions, and account levels, for administrators."},
		rest.Tag{Name: "Corporate users", Sections: []string{"4.20 Corporate"},
			Description: "Applications of companies, and the accounts that act for companies, for administrators."},
		rest.Tag{Name: "Inbox", Sections: []string{"Extensions: inbox"},
			Description: "The queues of pending work, with their sizes, for administrators."},
		rest.Tag{Name: "Presence", Sections: []string{"Extensions: presence"},
			Description: "Other administrators who have the same record open."},
	),
)

// area assigns tags to an area of the service.
func area(name string, tags ...rest.Tag) []rest.Tag {
	for i := range tags {
		tags[i].Area = name
	}
	return tags
}

// schemas holds the JSON Schemas that Go types cannot express. A section adds its
// schemas by a file schemas.json in its folder.
//
//go:embed */schemas.json */*/schemas.json
var schemas embed.FS

// examples are executed examples by operation id, packed. A test executes them and writes examples.json, which has them
// one on each line, and this file.
//
//go:embed examples.json.gz
var examples []byte

// Tags returns the names of the groups of the document, in its order.
func Tags() []string { return rest.Each(tags, func(t rest.Tag) string { return t.Name }) }

// OpenAPI renders the endpoints as an OpenAPI document. The server is the prefix of the paths, a URL or a path; empty
// for the root. With a tag, the document holds only its operations, and the components that they use.
func OpenAPI(version, server, tag string) ([]byte, error) {
	x := rest.Extra{Description: description, ServerURL: server, Tags: tags,
		Challenge: reflect.TypeFor[wire.ChallengeAnswer]()}
	endpoints := Endpoints()
	if tag != "" {
		x.Tags = slices.DeleteFunc(slices.Clone(tags), func(t rest.Tag) bool { return t.Name != tag })
		endpoints = slices.DeleteFunc(endpoints, func(e rest.Endpoint) bool {
			return !slices.ContainsFunc(x.Tags, func(t rest.Tag) bool { return slices.Contains(t.Sections, e.Section) })
		})
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(examples))
	if err == nil {
		err = json.NewDecoder(unpacked).Decode(&x.Examples)
	}
	if err != nil {
		return nil, fmt.Errorf("examples: %w", err)
	}
	for _, name := range phraseFiles(schemas, "schemas.json") {
		if name == "rest/schemas.json" { // the kit adds its own
			continue
		}
		table, err := schemas.ReadFile(name)
		if err != nil {
			return nil, err
		}
		x.Schemas = append(x.Schemas, table)
	}
	return rest.OpenAPI(Title, version, endpoints, x)
}
