package httpapi

import (
	"embed"
	"reflect"
	"slices"

	"castellan/http/rest"
	"castellan/http/wire"
)

// Title names the service in its documents.
const Title = "Castellan"

// description introduces the document; each line is a paragraph.
const description = "Second-factor challenges in front of operations, sessions, and the administration of both.\n\n" +
	"An operation that starts a challenge answers {\"challenge\": …} with its token in the response header p-auth. " +
	"The client answers the listed methods with completeChallenge until execResult appears. The same outcome comes " +
	"on the socket /2fa (see /asyncapi.json) and from getChallengeResult, where Prefer: wait=N holds the request " +
	"until it is there.\n\n" +
	"Errors are problem details (RFC 9457) with a stable code. Texts for people come in Turkish, English or Arabic, " +
	"as Accept-Language asks. The query parameters of a GET may also be sent as a JSON body; the query wins."

// tags are the groups of the document, by area: each section of the interface, and the extensions beside it.
var tags = slices.Concat(
	area("kit",
		rest.Tag{Name: "Admin operations", Sections: []string{"4.10 Admin operations"},
			Description: "Parameters, agreements, mailings and accounting, for administrators."},
		rest.Tag{Name: "Integration", Sections: []string{"Extensions: integration"},
			Description: "Records that the platform's other services add and update, and the events that they read."},
		rest.Tag{Name: "Audit", Sections: []string{"Extensions: audit"},
			Description: "The log of every act: actor, action, subject and time, for administrators."},
		rest.Tag{Name: "Jobs", Sections: []string{"Extensions: jobs"},
			Description: "Background jobs such as mailings: list, progress and cancellation, for administrators."},
		rest.Tag{Name: "Setup", Sections: []string{"Extensions: setup"},
			Description: "Controls and features that are off, and live checks of settings, for administrators."},
		rest.Tag{Name: "Cluster", Sections: []string{"Extensions: cluster"},
			Description: "The nodes of the cluster and their active actors, for administrators."},
	),
	area("delivery",
		rest.Tag{Name: "Notifications", Sections: []string{"Extensions: notifications", "Extensions: agreements"},
			Description: "The notifications of an account and their read state."},
	),
	area("guard",
		rest.Tag{Name: "Firewall", Sections: []string{"4.5 Firewall rules", "Extensions: firewall"},
			Description: "Rules that count and refuse requests, for administrators."},
	),
	area("access",
		rest.Tag{Name: "Login and sessions", Sections: []string{"Extensions: login and sessions"},
			Description: "Log in, log out, and list the sessions of an account."},
		rest.Tag{Name: "Challenges", Sections: []string{"4.1 2FA", "Extensions: challenges"},
			Description: "Complete a challenge: answer its methods, request a new code, read the outcome."},
		rest.Tag{Name: "Authenticator", Sections: []string{"4.2 TOTP"},
			Description: "The authenticator app of an account and its recovery codes."},
		rest.Tag{Name: "Password", Sections: []string{"4.3 Password"},
			Description: "Change a password, or reset a forgotten one."},
		rest.Tag{Name: "Devices", Sections: []string{"Extensions: devices"},
			Description: "Registered devices, which approve pushes with their keys."},
		rest.Tag{Name: "Registration", Sections: []string{"Extensions: registration"},
			Description: "Sign-up by users themselves, where it is enabled."},
		rest.Tag{Name: "Users", Sections: []string{"4.12 Users", "Extensions: users"},
			Description: "The profile of the caller, and the accounts that administrators read and change."},
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
			Description: "Keys with which the platform's other services call this one, for administrators."},
		rest.Tag{Name: "Public keys", Sections: []string{"Extensions"},
			Description: "The keys with which clients verify tokens and subscribe to pushes."},
	),
	area("money",
		rest.Tag{Name: "Currencies and rates", Sections: []string{"4.7 Currency and assets"},
			Description: "Currencies, networks, the assets of an account, and exchange rates."},
		rest.Tag{Name: "Balances", Sections: []string{"4.9 Process and balance"},
			Description: "Balances of users, also by day, and balances held at providers, for administrators."},
		rest.Tag{Name: "Transactions", Sections: []string{"4.14 Transactions", "Extensions: transactions"},
			Description: "Deposits, withdrawals and adjustments of balances, for administrators."},
		rest.Tag{Name: "Blockages", Sections: []string{"4.17 Blockage"},
			Description: "Blocked amounts of users' balances, for administrators."},
		rest.Tag{Name: "Withdrawal addresses", Sections: []string{"4.18 Withdrawal address book"},
			Description: "The address book for withdrawals of an account."},
	),
	area("office",
		rest.Tag{Name: "Contracts", Sections: []string{"4.8 Contracts"},
			Description: "The contracts that users accept, and their details, for administrators."},
		rest.Tag{Name: "Announcements", Sections: []string{"4.19 Announcements"},
			Description: "The public list of announcements, kept by administrators."},
		rest.Tag{Name: "Deploy and VPN requests", Sections: []string{"4.13 Deploy and VPN requests"},
			Description: "Staff requests for deployments and VPN access, which an administrator approves or rejects."},
		rest.Tag{Name: "Approvals", Sections: []string{"Extensions: approvals"},
			Description: "Requests that need the approval of a second person, for administrators."},
	),
	area("people",
		rest.Tag{Name: "Documents", Sections: []string{"4.11 Documents"},
			Description: "Documents of users, such as a passport: encrypted at rest, readable by administrators only."},
		rest.Tag{Name: "Additional info", Sections: []string{"4.15 Additional info and identity"},
			Description: "Additional information that a user provides, and the options to choose from."},
		rest.Tag{Name: "KYC and levels", Sections: []string{"4.16 KYC and levels", "Extensions: KYC", "Extensions: levels"},
			Description: "Identity checks of accounts, their decisions, and account levels, for administrators."},
		rest.Tag{Name: "Corporate users", Sections: []string{"4.20 Corporate"},
			Description: "Applications of companies, and the accounts that act for companies, for administrators."},
		rest.Tag{Name: "Presence", Sections: []string{"Extensions: presence"},
			Description: "The administrators that have a record open, for administrators."},
	),
)

// area puts tags into an area of the service.
func area(name string, tags ...rest.Tag) []rest.Tag {
	for i := range tags {
		tags[i].Area = name
	}
	return tags
}

// schemas are the JSON Schemas of every section that Go types do not say. A
// section that has one adds schemas.json to its folder, and nothing else.
//
//go:embed */schemas.json */*/schemas.json
var schemas embed.FS

// OpenAPI renders the table as a document. The server is what stands before its
// paths, a URL or a path; empty where they lie at the root.
func OpenAPI(version, server string) ([]byte, error) {
	x := rest.Extra{Description: description, ServerURL: server, Tags: tags,
		Challenge: reflect.TypeFor[wire.ChallengeAnswer]()}
	for _, name := range named(schemas, "schemas.json") {
		if name == "rest/schemas.json" { // the kit adds its own
			continue
		}
		table, err := schemas.ReadFile(name)
		if err != nil {
			return nil, err
		}
		x.Schemas = append(x.Schemas, table)
	}
	return rest.OpenAPI(Title, version, Endpoints(), x)
}
