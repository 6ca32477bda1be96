package web_test

import (
	"encoding/json"
	"os"
)

type object = map[string]any

// document reads a document of the service.
func document(name string) (doc object) {
	text, err := os.ReadFile("../docs/" + name)
	if err == nil {
		err = json.Unmarshal(text, &doc)
	}
	if err != nil {
		panic(err)
	}
	return doc
}

// openAPI is the document of the service with few endpoints and another introduction. They have references, nesting,
// arrays of tuples, nullable types, choices, alternatives of credentials, codes of errors and examples.
func openAPI() object {
	doc := document("openapi.json")
	doc["info"].(object)["description"] = "Second-factor challenges, sessions\nand their administration.\n\n" +
		"A client answers with `p-auth`:\n- by the answer,\n- by the socket, which\n  may come first."
	all, some := doc["paths"].(object), object{}
	for _, path := range []string{"/auth/login", "/auth/sessions", "/auth/2fa/challenge/complete",
		"/admin/system/mfa/policies/common"} {
		some[path] = all[path]
	}
	doc["paths"] = some
	return doc
}
