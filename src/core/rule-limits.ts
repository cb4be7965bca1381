/** Limits of rules and alarms. A part of `LIMITS`. */
import { DAY_MS, HOUR_MS, KIB, MINUTE_MS, SECOND_MS } from './units.js';

export const RULE_LIMITS = {
  rulesPerTenant: 1_000,
  // Rules that have changed and are read in one query.
  rulesReadTogether: 100,
  ruleConditions: 50,
  ruleCharacters: 64 * KIB,
  ruleObjects: 1_000,
  ruleLabels: 100,
  ruleFences: 1_000,
  ruleValues: 100,
  ruleActions: 20,
  ruleSpanMaxMs: 366 * DAY_MS,
  ruleControlMs: HOUR_MS,
  // Commands of one rule to one object within a time: the answer to a command may raise the next alarm.
  ruleCommands: 100,
  ruleCommandsMs: HOUR_MS,
  // Alarms of which what they need to know is read together.
  alarmsRaisedTogether: 100,
  // Rules and objects that the audit knows of: others are told to the database again.
  heldBackRemembered: 10_000,

  // A dry run: the packets that it reads, and the alarms that it shows.
  testedPackets: 500_000,
  testedAlarms: 1_000,
  // Computing time of a dry run, in turns with everything else.
  testBusyMs: 10 * SECOND_MS,

  // How much later than its own time an alarm is marked `late`.
  alarmLateMs: MINUTE_MS,
  // How much later than its time a packet makes an instance look for those before it, and at how many.
  alarmLookBackMs: 10 * SECOND_MS,
  alarmLookBackPackets: 100,
  // Conditions of an object's rules that are evaluated while a change is planned, where an expression counts as many, and a geofence by
  // the points of shapes near the object.
  // More of them would delay the live feed.
  plannedConditions: 200,
  // Steps of all expressions that are evaluated while a change is planned. A rule that has taken more is not evaluated there again.
  plannedSteps: 20_000,
  conditionsOfExpression: 20,
  // Points of geofences around a place that are looked at in the time of a condition.
  fencePointsOfCondition: 16,
  // About how many steps a condition takes that is no expression.
  conditionSteps: 5,
  alarmNotes: 100,
  alarmNoteCharacters: 4_096,

  // An expression: its length, its nodes and their depth, the items of a list in it, its macros. Macros have no result for packets of
  // more values. The size of a pattern, and of all in it; how many are kept, and their size, of which
  // one is up to 90 bytes.
  expressionCharacters: 4 * KIB,
  expressionNodes: 300,
  expressionDepth: 32,
  expressionItems: 100,
  expressionMacros: 4,
  expressionMacroNodes: 20,
  expressionValues: 200,
  expressionTextCharacters: 64,
  expressionPatternSize: 1_000,
  expressionPatternsSize: 2_000,
  expressionPatterns: 10_000,
  expressionPatternsKept: 500_000,
  // The steps of an evaluation, or of all formulas of a packet: about 20 ns each. A character or an item is one; then, what a name, a
  // value or an operator takes, a member of an object, an error, a time in a zone, a character that is parsed as JSON. How many
  // characters of what is sought are compared in one. How deep the values are nested that operators and functions are given.
  expressionSteps: 200_000,
  // Of all rules of an object for a packet: each rule with an expression has its share.
  objectExpressionSteps: 2_000_000,
  expressionNodeSteps: 10,
  expressionMemberSteps: 10,
  expressionErrorSteps: 500,
  expressionZoneSteps: 5_000,
  expressionParsedSteps: 4,
  expressionComparedCharacters: 16,
  expressionNesting: 4,

  // Formulas of a model: how many, and their operations together. One of a macro or a pattern counts as many.
  modelFormulas: 50,
  modelFormulaCost: 2_000,
  formulaLongCost: 20,
  // The characters of all results of a packet; a number counts as a few.
  formulaResultCharacters: 4 * KIB,
  formulaNumberCharacters: 8,

  // What the values of a parameter mean, as its model declares it.
  parameterStates: 50,
  parameterThresholds: 20,
  stateValueCharacters: 256,
  meaningLabelCharacters: 64,
} as const;
