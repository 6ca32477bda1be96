package web_test

type object = map[string]any

func field(kind, description string) object { return object{"type": kind, "description": description} }

func jsonBody(schema object) object { return object{"application/json": object{"schema": schema}} }

// openAPI is a small document with everything that the viewer must support: references, nesting, arrays of tuples,
// nullable types, choices, alternatives of credentials, codes of errors and examples.
func openAPI() object {
	reference := func(name string) object { return object{"$ref": "#/components/schemas/" + name} }
	problem := object{"description": "Refused", "content": object{"application/problem+json": object{
		"schema":   reference("Problem"),
		"examples": object{"login": object{"value": object{"code": "INVALID_CREDENTIALS"}}}}}}
	challenge := object{
		"description": "The challenge to complete",
		"headers":     object{"p-auth": object{"description": "Token of the challenge"}},
		"content": jsonBody(
			object{
				"type":       "object",
				"properties": object{"challenge": reference("Challenge")},
				"required":   []string{"challenge"},
			},
		),
	}
	challenge["content"].(object)["application/json"].(object)["example"] = object{"challenge": object{}}
	session := object{
		"type": "object",
		"properties": object{
			"sessionId": field("string", "Opaque id"),
			"current":   field("boolean", "The session of this request"),
			"createdAt": object{
				"type":   "string",
				"format": "date-time",
			},
			"countryName": object{"type": []string{"string", "null"}},
		},
	}
	policyBody := object{"type": "object", "required": []string{"actionCode", "methods"}, "properties": object{
		"actionCode": object{"type": "string", "enum": []string{"LOGIN", "RESET_PASSWORD", "TOTP_SETUP"}},
		"required":   object{"type": "integer", "minimum": 1, "default": 1},
		"methods": object{"type": "array", "description": "Methods in the order of preference",
			"items": object{"type": "array", "prefixItems": []object{{"type": "string"}, {"type": "string"}}}}}}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title":   "Castellan",
			"version": "1",
			"description": "Second-factor challenges, sessions\nand their administration.\n\nA client answers with " +
				"`p-auth`:\n- by the answer,\n- by the socket, which\n  may come first.",
		},
		"tags": []object{{"name": "4.1 2FA", "description": "Completing, renewing and reading challenges."}},
		"paths": object{
			"/auth/login": object{"post": object{"tags": []string{"Sessions"}, "operationId": "login", "summary": "Log in",
				"security":    []object{{}},
				"description": "A right password starts a challenge; completing it opens a session.",
				"requestBody": object{
					"required": true,
					"content": object{"application/json": object{"example": object{"email": "jane@example.com"},
						"schema": object{"type": "object", "required": []string{"password"}, "properties": object{
							"countryCode": object{"type": "string", "description": "Calling code without plus",
								"examples": []string{"90"}},
							"phoneNumber": object{"type": "string", "maxLength": 20}, "email": object{"type": "string", "format": "email"},
							"password": field("string", "The account's password")}}}},
				},
				"responses": object{"200": challenge, "401": problem},
				"x-codes": object{"400": []string{"INVALID_FIELD"}, "401": []string{"INVALID_CREDENTIALS"},
					"429": []string{"RATE_LIMITED"}}}},
			"/auth/sessions": object{
				"get": object{
					"tags":     []string{"Sessions"},
					"summary":  "List sessions",
					"security": []object{{"x-auth": []string{}}},
					"parameters": []object{
						{"name": "limit", "in": "query", "schema": object{"type": "integer"}, "description": "How many"},
					},
					"responses": object{
						"200": object{
							"description": "The caller's sessions",
							"content":     jsonBody(object{"type": "array", "items": session}),
						},
					},
				},
				"delete": object{
					"tags":     []string{"Sessions"},
					"summary":  "End a session",
					"security": []object{{"x-auth": []string{}}},
					"requestBody": object{
						"content": jsonBody(
							object{
								"type":       "object",
								"properties": object{"sessionId": field("string", ""), "all": field("boolean", "End every session")},
							},
						),
					},
					"responses": object{"200": object{"description": "How many ended"}},
				}},
			"/auth/2fa/challenge/complete": object{"post": object{"tags": []string{"4.1 2FA"},
				"operationId": "completeChallenge", "summary": "Complete a method",
				"x-codes":  object{"409": []string{"CHALLENGE_CLOSED", "METHOD_ALREADY_COMPLETED"}},
				"security": []object{{"p-auth": []string{}}, {"device-signature": []string{}}},
				"requestBody": object{
					"required": true,
					"content": jsonBody(
						object{"type": "object", "required": []string{"methodId", "method", "value"}, "properties": object{
							"methodId": field(
								"string",
								"Id from the challenge",
							), "method": object{"type": "string", "enum": []string{"TOTP", "PUSH", "MAIL", "SMS"}},
							"value": field("string", "The code, or APPROVED or DENIED for PUSH")}},
					),
				},
				"responses": object{
					"200": object{"description": "Accepted", "content": jsonBody(object{"type": "object", "properties": object{
						"action": field(
							"string",
							"Action code",
						), "execResult": object{"type": "object", "properties": object{"success": field("boolean", ""),
							"data": field("object", "")}}}})},
					"409": problem,
				}}},
			"/admin/system/mfa/policies/common": object{
				"post": object{"tags": []string{"4.4 MFA administration"}, "operationId": "addCommonPolicy",
					"summary":     "Add a policy",
					"security":    []object{{"x-auth": []string{}}},
					"requestBody": object{"required": true, "content": jsonBody(policyBody)},
					"responses": object{
						"200": object{
							"description": "Its id",
							"content":     jsonBody(object{"type": "object", "properties": object{"id": field("integer", "")}}),
						},
					},
					"x-codes": object{"409": []string{"RECORD_ALREADY_EXIST"}}},
			},
		},
		"components": object{
			"securitySchemes": object{
				"x-auth":           object{"type": "apiKey", "in": "header", "name": "x-auth"},
				"p-auth":           object{"type": "apiKey", "in": "header", "name": "p-auth"},
				"device-signature": object{"type": "apiKey", "in": "header", "name": "device-signature"}},
			"schemas": object{
				"Challenge": object{"type": "object", "required": []string{"challengeId", "methodList"}, "properties": object{
					"challengeId": field(
						"string",
						"challenge id",
					), "ts": object{"type": "integer", "format": "int64", "description": "creation time, epoch ms"},
					"status": object{
						"type": "string",
						"enum": []string{"PENDING", "COMPLETED"},
					}, "methodList": object{"type": "array", "items": reference("Method")}}},
				"Method": object{
					"type":     "object",
					"required": []string{"id", "name"},
					"properties": object{"id": field("string", ""),
						"name": object{
							"type": "string",
							"enum": []string{"TOTP", "PUSH", "MAIL", "SMS"},
						}, "expire": field("integer", "seconds"),
						"next": reference("Method")},
				},
				"Problem": object{
					"type":       "object",
					"properties": object{"code": field("string", "the stable contract"), "message": field("string", "")},
				}},
		},
	}
}

func asyncAPI() object {
	message := func(event string, data object) object {
		return object{
			"name": event,
			"payload": object{"type": "object", "required": []string{"challengeId", "event"}, "properties": object{
				"challengeId": field("string", "challenge id"), "action": field("string", "action code"),
				"event": object{"const": event}, "data": object{"type": "array", "items": data}}},
		}
	}
	return object{
		"asyncapi": "3.0.0",
		"info":     object{"title": "Castellan socket", "version": "1"},
		"channels": object{
			"challenge": object{"address": "/2fa", "description": "Events of one challenge, replayed on connect.",
				"messages": object{
					"method": object{"$ref": "#/components/messages/method"},
					"action": object{"$ref": "#/components/messages/action"},
				},
				"bindings": object{
					"ws": object{
						"headers": object{"type": "object", "properties": object{"p-auth": field("string", "Token of the challenge")}},
					},
				}},
		},
		"operations": object{
			"events": object{
				"action":  "send",
				"summary": "Outcome of a challenge",
				"channel": object{"$ref": "#/channels/challenge"},
				"x-close-codes": object{
					"4401": "p-auth expired",
					"4410": "the challenge ended without an outcome",
					"4429": "too many sockets",
				},
			},
		},
		"components": object{"messages": object{
			"method": message(
				"METHOD_COMPLETE",
				object{"type": "object", "properties": object{"methodId": field("string", ""), "method": field("string", "")}},
			),
			"action": message(
				"ACTION_COMPLETE",
				object{
					"type":       "object",
					"properties": object{"success": field("boolean", ""), "data": field("object", ""), "headers": field("object", "")},
				},
			)}},
	}
}
