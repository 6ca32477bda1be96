package httpapi

import (
	"embed"
	"io/fs"
	"reflect"

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

// tags are the groups of the document: each section of the interface, and the
// extensions beside it.
var tags = []rest.Tag{
	{Name: "Login and sessions", Sections: []string{"Extensions: login and sessions"},
		Description: "Log in, log out, and see where an account is logged in."},
	{Name: "Challenges", Sections: []string{"4.1 2FA", "Extensions: challenges"},
		Description: "Work through a challenge: answer its methods, ask for a new code, read the outcome."},
	{Name: "Authenticator", Sections: []string{"4.2 TOTP"},
		Description: "The authenticator app of an account and its recovery codes."},
	{Name: "Password", Sections: []string{"4.3 Password"},
		Description: "Change a password, or reset a forgotten one."},
	{Name: "Devices", Sections: []string{"Extensions: devices"},
		Description: "Registered devices, which approve pushes with their keys."},
	{Name: "Admin operations", Sections: []string{"4.10 Admin operations"},
		Description: "Parameters, agreements, messages to many and the accounting, for administrators."},
	{Name: "Documents", Sections: []string{"4.11 Documents"},
		Description: "Documents of users, such as a passport: sealed, and handed out to administrators alone."},
	{Name: "Users", Sections: []string{"4.12 Users", "Extensions: users"},
		Description: "What an account sees of itself, and what administrators see and change of accounts."},
	{Name: "Deploy and VPN requests", Sections: []string{"4.13 Deploy and VPN requests"},
		Description: "What staff asks for and an administrator approves or rejects."},
	{Name: "Balances", Sections: []string{"4.9 Process and balance"},
		Description: "What users have, day by day too, and what the house has at other platforms, for administrators."},
	{Name: "Transactions", Sections: []string{"4.14 Transactions", "Extensions: transactions"},
		Description: "What comes in, what goes out, and corrections of balances, for administrators."},
	{Name: "Notifications", Sections: []string{"Extensions: notifications", "Extensions: agreements"},
		Description: "What an account was told, and which of it was read."},
	{Name: "Additional info", Sections: []string{"4.15 Additional info and identity"},
		Description: "What an account says of itself, and the options to choose from."},
	{Name: "KYC and levels", Sections: []string{"4.16 KYC and levels", "Extensions: KYC",
		"Extensions: levels"},
		Description: "Who an account belongs to and whether it may be used, as administrators decide, and the levels of " +
			"accounts."},
	{Name: "Blockages", Sections: []string{"4.17 Blockage"},
		Description: "Amounts that a user has and may not use, for administrators."},
	{Name: "Withdrawal addresses", Sections: []string{"4.18 Withdrawal address book"},
		Description: "The address book for withdrawals of an account."},
	{Name: "Allowed countries", Sections: []string{"4.21 Geographic filter"},
		Description: "The countries from which an account may be used."},
	{Name: "MFA administration", Sections: []string{"4.4 MFA administration", "Extensions: multi-factor administration"},
		Description: "Methods, actions and policies of the second factor, for administrators."},
	{Name: "Firewall", Sections: []string{"4.5 Firewall rules", "Extensions: firewall"},
		Description: "Rules that count and refuse requests, for administrators."},
	{Name: "Resource registry", Sections: []string{"4.6 Resource registry"},
		Description: "What permissions are granted on: endpoints, pages and their parts, for administrators."},
	{Name: "Currencies and rates", Sections: []string{"4.7 Currency and assets"},
		Description: "What can be held and moved on which network, what an account has of it, and exchange rates."},
	{Name: "Announcements", Sections: []string{"4.19 Announcements"},
		Description: "What the platform tells its users: a public list, kept by administrators."},
	{Name: "Corporate users", Sections: []string{"4.20 Corporate"},
		Description: "Companies that apply, and the accounts that act for companies, for administrators."},
	{Name: "Contracts", Sections: []string{"4.8 Contracts"},
		Description: "The contracts that users agree to, and their details, for administrators."},
	{Name: "Roles", Sections: []string{"Extensions: roles and permissions"},
		Description: "Roles, the accounts that have them, and what they are granted, for administrators."},
	{Name: "Service clients", Sections: []string{"Extensions: service clients"},
		Description: "Keys by which other services of the platform call this one, for administrators."},
	{Name: "Integration", Sections: []string{"Extensions: integration"},
		Description: "Records that the platform's other services bring in and move on, and the events that they read."},
	{Name: "Registration", Sections: []string{"Extensions: registration"},
		Description: "How users sign up themselves, where that is switched on."},
	{Name: "Approvals", Sections: []string{"Extensions: approvals"},
		Description: "Requests that wait for a second person, for administrators."},
	{Name: "Audit", Sections: []string{"Extensions: audit"},
		Description: "Who did what to whom, for administrators."},
	{Name: "Cluster", Sections: []string{"Extensions: cluster"},
		Description: "The nodes and what lives on them, for administrators."},
	{Name: "Setup", Sections: []string{"Extensions: setup"},
		Description: "Controls and features that are off, and live checks of what is set, for administrators."},
	{Name: "Jobs", Sections: []string{"Extensions: jobs"},
		Description: "Background work such as mailings: what runs, how far it is, and how to stop it, for administrators."},
	{Name: "Presence", Sections: []string{"Extensions: presence"},
		Description: "Who has a record open at this moment, for administrators."},
	{Name: "Public keys", Sections: []string{"Extensions"},
		Description: "The keys with which clients verify tokens and subscribe to pushes."},
}

// schemas are the JSON Schemas of every section that Go types do not say. A
// section that has one adds schemas.json to its folder, and nothing else.
//
//go:embed */schemas.json
var schemas embed.FS

// OpenAPI renders the table as a document. The server is what stands before its
// paths, a URL or a path; empty where they lie at the root.
func OpenAPI(version, server string) ([]byte, error) {
	tables, err := fs.Glob(schemas, "*/schemas.json")
	if err != nil {
		return nil, err
	}
	x := rest.Extra{Description: description, ServerURL: server, Tags: tags,
		Challenge: reflect.TypeFor[wire.ChallengeAnswer]()}
	for _, name := range tables {
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
