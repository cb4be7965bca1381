/** The tables of docs/ and the code say the same, both ways. Long because internal limits are listed by name. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { CONFIG_NAMES, parseConfig } from '../../../src/config.js';
import { BUILT_IN_ROLES } from '../../../src/core/builtin.js';
import { ERROR_KINDS } from '../../../src/core/errors.js';
import { LIMITS } from '../../../src/core/limits.js';
import { STORES, type Store } from '../../../src/core/stores.js';
import { ROUTES } from '../../../src/openapi/all-routes.js';
import { routes } from '../../http/routes.js';
import { filesUnder, sourceFiles } from '../../support/docs/files.js';
import { readCode, readSection, readTable, readTables } from '../../support/docs/markdown.js';

const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
const REFERENCE = 'docs/reference';
const DEVELOPMENT = 'docs/development.md';
const tableOf = (file: string, title: string): string[][] => readTable(readSection(file, title));
const firstCodes = (rows: string[][]): string[] => rows.map(([cell]) => readCode(cell)[0] as string);

test('lists every error', () => {
  const shown = tableOf(`${REFERENCE}/errors.md`, 'Errors').map(([status, message, , tags]) => [
    status,
    message,
    readCode(tags),
  ]);
  const known = Object.entries(ERROR_KINDS).map(([status, { message, tags }]) => [status, message, [...tags]]);
  expect(shown).toEqual(known);
});

describe('Limits', () => {
  const UNITS: Readonly<Record<string, number>> = {
    KiB: 1_024,
    MiB: 1_024 ** 2,
    ms: 1,
    s: 1_000,
    min: 60_000,
    h: 3_600_000,
    day: 86_400_000,
    days: 86_400_000,
  };
  /** Internal limits, which no user meets. */
  const INTERNAL = [
    'rightsDeliveryMs',
    'itemsPerTurn',
    'rulesReadTogether',
    'alarmsRaisedTogether',
    'memoryStepBytes',
    'spareBufferBytes',
    'spareBuffers',
    'passwordHashesAtOnce',
    'packetsPerWrite',
    'packetWritesAtOnce',
    'smallWriteRequests',
    'writeBytes',
    'slowCheckMs',
    'reportPieceBytes',
    'reportFencesRead',
    'reportPieceMs',
    'timerMs',
    'connectionCheckMs',
    'databaseConnections',
    'cachedAccounts',
    'mailConnections',
    'notificationCheckMs',
    'scheduleCheckMs',
    'noticesAtOnce',
    'notificationLanes',
    'notificationBatch',
    'cachedTokens',
    'cachedModels',
    'cachedSources',
    'downlinkLeaseMs',
    'downlinkNotedMs',
    'downlinksWaiting',
    'downlinksWaitingPerSource',
    'downlinkCheckMs',
    'downlinkBatch',
    'refusedPayloadsPending',
    'refusedPayloadsDelayMs',
    'cachedAudiences',
    'cachedArrivals',
    'wrongClockCheckMs',
    'wrongClocksNoted',
    'watcherWaitMs',
    'watcherSilenceMs',
    'watcherPauseMaxMs',
    'stopPollMs',
    'databaseSelectionMs',
    'watcherAnswerMs',
    'watcherAnswerMaxMs',
    'watcherHeartbeatMs',
    'watcherConnections',
    'watcherAttempts',
    'databaseConnectMs',
    'databaseHeartbeatMs',
    'databaseRetryMs',
    'historyPage',
    'historyWaitMs',
    'historiesAtOnce',
    'backfillAheadMs',
    'backfillWaitMs',
    'groupMoveSettleMs',
    'moveRecheckMs',
    'auditPending',
    'refusedPending',
    'refusedDelayMs',
    'auditDelayMs',
    'auditActors',
    'expiryBatch',
    'retryPauseMs',
    'databaseRetryPauseMaxMs',
    'probeConnections',
    'leaseMs',
    'acceptQueueDrainMs',
    'stopUnusedMs',
    'stopQuietTurns',
    'loadWindowMs',
    'loadWindows',
    'loadResolutionMs',
    'bigBodyBytes',
    'mqttThrottleMs',
    'mqttDevicesRemembered',
    'presenceRenewMs',
    'presenceSilentMs',
    'presenceBatch',
    'silentReadBatch',
    'readersBatch',
    'clockStepMs',
    'presenceGroupsAtOnce',
    'presenceGatherMs',
    'presenceRecheckMs',
    'commandRetryMs',
    'brokerConnections',
    'brokerReconnectMs',
    'brokerDeviceMs',
    'brokerLeaveMs',
    'brokerCheckBatch',
    'idleCallers',
    'storesAtOnce',
    'listConnectionsMore',
    'answerCheckMs',
    'bodyPieceBytes',
    'slicedPackets',
    'leftoversAtOnce',
    'leftoverPauseMs',
    'logWriteBytes',
    'logDelayMs',
    'schemaFreeSteps',
    'schemaStepsBetween',
    'disconnectGroupMin',
    'disconnectGroups',
    'disconnectPauseMs',
    'gatherMs',
    'gatherAheadMs',
    'turnMs',
    'watcherPage',
    'recentChanges',
    'recentBytes',
    'recentPage',
    'replayBufferIdleMs',
    'pastStepMs',
    'pastTries',
    'timeMaxMs',
    'latestBatchObjects',
    'latestBatchPackets',
    'bucketPackets',
    'bucketBytes',
    'packAfterMinMs',
    'packedAgeMs',
    'bucketsKnownMs',
    'packingRows',
    'packingBytes',
    'packingSettleMs',
    'packingStepsWaiting',
    'packingStepsPending',
    'bucketSpansRead',
    'bucketsRead',
    'bucketHeadsRead',
    'packedReadBytes',
    'evaluatedBytes',
    'packedSortBytes',
    'packedNamesAtOnce',
    'packedNamesWaiting',
    'packedNamesWaitingPerCaller',
    'packingPacketsPerSecond',
    'packingPauseMs',
    'packingObjects',
    'packingFailedObjects',
    'packingRestMaxMs',
    'packingObjectsResting',
    'pastObjectsAtOnce',
    'pastBatch',
    'pastUpdatesPage',
    'pastClockMs',
    'sweepPauseMs',
    'sweepPauseRatio',
    'sweepBatch',
    'packetsPerRemoval',
    'orphanGraceMs',
    'orphansNoted',
    'partitions',
    'partitionTickMs',
    'partitionMarginMs',
    'partitionTasks',
    'commitTasks',
    'commitBytes',
    'commitTenantSteps',
    'webhookWindow',
    'webhookBufferBytes',
    'webhookBufferUnderLoadBytes',
    'webhookAckDelayMs',
    'webhookIdleMs',
    'webhookResolveMs',
    'webhookNameTryMs',
    'webhookNameTries',
    'webhookOtherFamilyMs',
    'partitionTaskBytes',
    'taskBytes',
    'tenantTaskBytesUnderLoad',
    'webhookSendsPerTurn',
    'cachedObjectFacts',
    'webhookSweepMs',
    'webhookCountedRows',
    'webhookSweepBatch',
    'pastObjectsBatch',
    'webhookReplayCheckMs',
    'expressionPatterns',
    'expressionPatternsKept',
    'formulaNumberCharacters',
    'heldBackRemembered',
    'expressionNodeSteps',
    'expressionMemberSteps',
    'expressionErrorSteps',
    'expressionZoneSteps',
    'expressionParsedSteps',
    'expressionComparedCharacters',
    'alarmLookBackMs',
    'alarmLookBackPackets',
    'plannedConditions',
    'conditionsOfExpression',
    'conditionSteps',
    'fencePointsOfCondition',
    'plannedSteps',
    'backupCompression',
    'backupPieceBytes',
    'restoreBatch',
  ];
  const code = sourceFiles()
    .filter(({ path }) => path !== 'src/core/limits.ts')
    .map(({ text }) => text)
    .join('\n');
  const isHeld = (name: string): boolean => new RegExp(`\\bLIMITS\\.${name}\\b`).test(code);

  test('lists every limit of users with its value', () => {
    const rows = readTables(readSection(`${REFERENCE}/limits.md`, 'Limits')).flat();
    const shown = rows.map(([, value, constant]) => [readCode(constant)[0], toNumber(value as string)]);
    const met = Object.entries(LIMITS).filter(([name]) => !INTERNAL.includes(name) && isHeld(name));
    expect(Object.fromEntries(shown)).toEqual(Object.fromEntries(met));
    expect(shown).toHaveLength(met.length);
  });

  test('names only existing internal limits', () => {
    expect(INTERNAL.filter((name) => !(name in LIMITS))).toEqual([]);
  });

  function toNumber(value: string): number {
    const [, digits, unit] = /^([\d,]+) ?(\S*)/.exec(value) ?? [];
    return Number(digits?.replaceAll(',', '')) * (UNITS[unit ?? ''] ?? 1);
  }
});

describe('Configuration', () => {
  const rows = tableOf(`${REFERENCE}/configuration.md`, 'Configuration').map(([name, preset]) => [
    readCode(name)[0] as string,
    readCode(preset)[0],
  ]);
  const example = readFileSync('.env.example', 'utf8').split('\n');
  const inExample = example.flatMap((line) => {
    const [, name, value] = /^#? ?([A-Z][A-Z_]+)=(.*)$/.exec(line) ?? [];
    return name === undefined ? [] : [[name, value === '' ? undefined : value]];
  });

  test('lists every variable in docs/reference/configuration.md and .env.example with its default', () => {
    // NODE_ENV belongs to Node; the service only looks at it.
    expect(rows.map(([name]) => name).sort()).toEqual([...CONFIG_NAMES, 'NODE_ENV'].sort());
    expect(inExample).toEqual(rows);
  });

  test.each(rows.filter(([, preset]) => preset !== undefined))('names the default of %s: %s', (name, preset) => {
    expect(parseConfig({ [name as string]: preset })).toEqual(parseConfig({}));
  });

  test('finds no values in .env.example', () => {
    expect(example.filter((line) => line !== '' && !line.startsWith('#'))).toEqual([]);
  });
});

describe('Dependencies and npm scripts', () => {
  test.each([
    ['dependencies', 'To run'],
    ['devDependencies', 'To develop'],
  ])('lists %s', (group, title) =>
    expect(firstCodes(tableOf(DEVELOPMENT, title)).sort()).toEqual(Object.keys(manifest[group]).sort()),
  );

  test('npm scripts', () => {
    expect(firstCodes(tableOf(DEVELOPMENT, 'npm scripts')).sort()).toEqual(Object.keys(manifest.scripts).sort());
    expect(Object.keys(manifest.scripts).length).toBeLessThanOrEqual(16);
  });
});

describe('Interface', () => {
  test('lists every route', () => {
    const shown = tableOf(`${REFERENCE}/http-api.md`, 'Routes').map(
      ([method, path]) => `${method} ${readCode(path)[0]}`,
    );
    expect([...shown].sort()).toEqual(routes().sort());
  });

  test('says of each route what its declaration says', () => {
    const shown = tableOf(`${REFERENCE}/http-api.md`, 'Routes').map((cells) => cells.join(' | '));
    const declared = ROUTES.map(({ method, path, summary, docs }) =>
      [method, `\`${path}\``, docs ?? summary].join(' | '),
    );
    expect(declared.filter((row) => !shown.includes(row))).toEqual([]);
  });
});

describe('Stores', () => {
  const rows = tableOf(`${REFERENCE}/stores.md`, 'Stores');
  // Nothing that anybody gave: when an entity ends by itself, when a group was moved, who has sent a command, the hash of a key, what a link shows.
  const BOOKKEEPING = [
    '_expires',
    '_moved',
    '_holder',
    '_bySource',
    '_downlink',
    '_early',
    '_rule',
    '_parents',
    '_objects',
    '_link',
    '_withoutOwner',
    '_handover',
    '_resumed',
    '_key',
    '_confirmed',
  ];
  const WHEN = { param: 'a', op: 'changed' };
  const SAMPLES = {
    id: 'a',
    name: 'a',
    login: 'a',
    password: 'long enough',
    credentials: [],
    kind: 'json',
    when: WHEN,
    query: 'view=table',
    report: 'trips',
    interval: 'today',
    cron: '0 6 * * *',
    to: {},
  };

  test('lists the names', () => expect(firstCodes(rows)).toEqual([...STORES.keys()]));

  test.each(rows)('describes %s: required %s, unique %s, fixed %s, never returned %s', (name, ...cells) => {
    const store = STORES.get(readCode(name)[0] as string) as Store;
    const [required, unique, fixed, hidden] = cells.map(readCode) as [string[], string[], string[], string[]];
    const fields = Object.fromEntries(Object.entries(SAMPLES).filter(([field]) => required.includes(field)));
    expect(() => store.checkNew(fields)).not.toThrow();
    for (const field of required) {
      const { [field]: _, ...rest } = fields;
      expect(() => store.checkNew(rest)).toThrow(`${field}: required`);
    }
    expect(unique).toEqual(store.unique);
    expect(fixed).toEqual(store.fixed);
    // A token is shown once, and not stored at all.
    const stored = hidden.filter((field) => !store.service.includes(field)).map((field) => `_${field}`);
    expect(stored).toEqual(store.hidden.filter((field) => !BOOKKEEPING.includes(field)));
    expect(store.readOnly).toBe(cells.at(-1)?.includes('read only') ?? false);
  });
});

test('lists the built-in roles', () => {
  const shown = tableOf(`${REFERENCE}/permissions.md`, 'Built-in roles').map(([name, credentials]) => ({
    name: readCode(name)[0],
    credentials: readCode(credentials),
  }));
  expect(shown).toEqual(BUILT_IN_ROLES.map(({ name, credentials }) => ({ name, credentials })));
});

test('quotes messages in Troubleshooting as the source has them', () => {
  const source = [...sourceFiles(), ...filesUnder('scripts')].map(({ text }) => text).join('\n');
  const messages = readTable(readFileSync('docs/operations/troubleshooting.md', 'utf8'))
    .map(([symptom]) => /^`([^`]+)`/.exec(symptom ?? '')?.[1])
    .filter((message) => message !== undefined);
  expect(messages.length).toBeGreaterThan(10);
  // Parts of a message may be filled in: three words in a row have to be those of the source.
  const isQuoted = (message: string): boolean =>
    message.split('…').some((part) => {
      const words = part.trim().split(' ');
      const runs = words.slice(2).map((word, at) => `${words[at]} ${words[at + 1]} ${word}`);
      return (runs.length > 0 ? runs : [part.trim()]).some((run) => run !== '' && source.includes(run));
    });
  expect(messages.filter((message) => !isQuoted(message))).toEqual([]);
});
